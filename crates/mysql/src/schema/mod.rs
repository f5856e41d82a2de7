//! The tables: what they look like, how they are created and checked.

pub(crate) mod migration;
pub(crate) mod table;
