#![doc = include_str!("../README.md")]

// In reading order: where the server is,
mod access;
mod address;
mod examination;
mod names;
// how it is spoken to,
mod batch;
mod connections;
mod refusal;
mod renewals;
mod schema;
mod sessions;
mod statement;
mod walk;
// and how waiters learn of a release.
mod doorbell;

pub use access::{Access, Opened};
pub use address::Address;
pub use batch::{Target, each};
pub use doorbell::Doorbell;
pub use examination::examine;
pub use mysql_async::{Params, Pool, Row, Value};
pub use names::{Namespace, TableName};
pub use refusal::{Stage, Verdict, classify};
pub use renewals::{Lease, Leases, Place, RENEWAL_BATCH, micros};
pub use schema::{Change, Column, Kind, Layout};
pub use sessions::{Reply, Sessions, Step, named};
pub use statement::{Columns, statement};
pub use walk::{Stretch, Sweep, Walk};
