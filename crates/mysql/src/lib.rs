#![doc = include_str!("../README.md")]

// What the builder of a backend collects, and what it gets for it;
mod settings;
// what makes a server unsafe for locks;
mod examination;
// the server and its connections;
mod server;
// the queue of waiters in the server;
mod advisory_queue;
// statements about many leases, also of callers of whom none asked for it, and the tables that they are about;
mod lease;
mod schema;
// and the parts that all of these are made of.
mod names;
mod statement;

pub use leasehold_core::{Answers, BoxFuture, GroupCommit, Namespace, Operations, Turns};
pub use mysql_async::{Params, Pool, Value};

pub use crate::advisory_queue::queue::AdvisoryQueue;
pub use crate::examination::{CURE, ExaminedTable, examine};
pub use crate::lease::claims::{GroupedClaims, NamedClaim, claim_again, claim_params, claim_row};
pub use crate::lease::releases::{ReleaseStatements, Releases};
pub use crate::lease::scan::{Chunk, RangeScan};
pub use crate::lease::statements::{Lease, LeaseStatements, RENEWAL_BATCH, micros};
pub use crate::lease::sweep::Sweep;
pub use crate::names::TableName;
pub use crate::schema::table::{Column, ColumnType, TableSchema};
pub use crate::server::sessions::{Apart, Sessions};
pub use crate::settings::{ConnectionSettings, Opened};
pub use crate::statement::batch::batch;
pub use crate::statement::params::named;
pub use crate::statement::reply::{Columns, Reply, Row};
pub use crate::statement::step::Step;
pub use crate::statement::text::statement;
