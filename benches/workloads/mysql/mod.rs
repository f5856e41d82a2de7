//! MR, MN and M-idle: readers and writers on MySQL, and its renewals.

mod idle_rows;
mod renewals;
mod rows;
mod rw;
pub(crate) mod server;

pub(crate) use self::idle_rows::one_beside_a_million;
pub(crate) use self::renewals::ten_thousand;
pub(crate) use self::rw::readers_and_writers;
