#![doc = include_str!("../README.md")]

// In reading order: where the server is,
mod access;
mod address;
mod names;
// how it is spoken to,
mod connections;
mod refusal;
mod renewals;
mod schema;
mod sessions;
mod statement;
// how waiters learn of a release,
mod doorbell;
// and what the crates' own tests stand on.
#[cfg(feature = "testing")]
pub mod testing;

pub use access::{Access, Opened};
pub use address::Address;
pub use doorbell::Doorbell;
pub use mysql_async::{Params, Pool, Row, Value};
pub use names::{Namespace, TableName};
pub use refusal::{Stage, Verdict, classify};
pub use renewals::{RENEWAL_BATCH, Table, micros};
pub use schema::{Column, Kind, Layout};
pub use sessions::{Reply, Sessions, Step, named};
pub use statement::{Columns, statement};
