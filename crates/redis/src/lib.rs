#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order, and each imports from those below it alone:
mod client;
mod keyspace;
mod pubsub;
mod script;

pub use fred;

pub use client::confirmation::Confirmation;
pub use client::connection::Connection;
pub use client::driver::DEFAULT_COMMAND_TIMEOUT;
pub use client::endpoint::Endpoint;
pub use client::error::classify;
pub use client::eviction::warn_of_eviction;
pub use client::examination::examine;
pub use client::replication::{fail_over_risks, warn_of_fail_over};
pub use client::settings::{
    ConnectionSettings, DEFAULT_FENCE_RETENTION, Source, check, check_fence_retention, invalid,
};
pub use keyspace::entry::Entry;
pub use keyspace::metadata::Metadata;
pub use keyspace::names::{KeyNames, Names, Namespace};
pub use keyspace::number::{Lease, lease, number};
pub use pubsub::notifications::{CHANNEL, PubSub};
pub use script::arguments::{ScriptArguments, millis};
pub use script::entry::{FORCE_RELEASE, INSPECT};
pub use script::error::script_error;
pub use script::function::{NEXT_EPOCH, ScriptFunction, ScriptFunctions};
pub use script::group_commit::GroupCommit;
pub use script::reply::Reply;
pub use script::source::{Script, digest};
