#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod confirmation;
mod connection;
mod endpoint;
mod error;
mod eviction;
mod group_commit;
mod lifeline;
mod names;
mod scan;
mod script;
mod settings;
mod signals;
mod step;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod words;

pub use fred;

pub use confirmation::Confirmation;
pub use connection::Connection;
pub use endpoint::Endpoint;
pub use error::{classify, failed};
pub use eviction::warn_of_eviction;
pub use group_commit::GroupCommit;
pub use names::{KeyNames, Names, Namespace};
pub use script::{Reply, Script, trouble};
pub use settings::DEFAULT_COMMAND_TIMEOUT;
pub use signals::{CHANNEL, Signals};
pub use step::{Step, Steps};
pub use words::Words;
