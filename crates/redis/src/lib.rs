#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// In reading order, and each imports from those below it alone:
mod builder;
mod client;
mod examination;
mod holders;
mod keyspace;
mod leases;
mod pubsub;
mod queue;
mod script;
mod store;

pub use fred;

pub use client::endpoint::{Endpoint, Source};
pub use client::settings::{ConnectionSettings, check_setting};
pub use examination::{CURE, Form, Identity, Needs, examine, identify};
pub use keyspace::entry::Entry;
pub use keyspace::metadata::{decode_metadata, encode_metadata};
pub use keyspace::names::{COUNTER, FORCED, KeyNames, LOCK, Namespace};
pub use keyspace::number::{Lease, read_epoch};
pub use pubsub::notifications::CHANNEL;
pub use queue::{QUEUE, QUEUE_LUA, read_queued};
pub use script::arguments::ScriptArguments;
pub use script::function::ScriptFunction;
pub use script::reply::Reply;
pub use script::shared_lua::{FORCE_RELEASE, INSPECT, NEXT_EPOCH, PROLONG, REWRITE};
pub use script::source::{Script, digest};
pub use store::{Confirmed, Notify, Store, StoreOptions};
