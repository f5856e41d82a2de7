//! The tables: what they look like, how they are created, checked and brought up to date.

pub(crate) mod migration;
pub(crate) mod table;
