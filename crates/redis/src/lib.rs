#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod cluster;
mod confirmation;
mod connection;
mod endpoint;
mod entry;
mod error;
mod eviction;
mod examination;
mod group_commit;
mod lifeline;
mod link;
mod metadata;
mod names;
mod replication;
mod scan;
mod script;
mod secrets;
mod sentinels;
mod settings;
mod signals;
mod slots;
mod step;
mod tls;
mod tries;
mod words;

pub use fred;

pub use access::{Access, DEFAULT_FENCE_RETENTION, Source, check, check_fence_retention, invalid};
pub use confirmation::Confirmation;
pub use connection::Connection;
pub use endpoint::Endpoint;
pub use entry::{Entry, FORCE, INSPECT};
pub use error::classify;
pub use eviction::warn_of_eviction;
pub use examination::examine;
pub use group_commit::GroupCommit;
pub use metadata::Metadata;
pub use names::{KeyNames, Names, Namespace};
pub use replication::{fail_over_risks, warn_of_fail_over};
pub use script::{Reply, Script, digest, trouble};
pub use settings::DEFAULT_COMMAND_TIMEOUT;
pub use signals::{CHANNEL, Signals};
pub use step::{DRAW, Step, Steps};
pub use words::{Lease, Words, lease, millis, number};
