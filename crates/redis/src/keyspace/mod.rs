//! What is kept in Redis for a key: under which names, and how its entry is read. No I/O.

pub(crate) mod entry;
mod json;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod number;
