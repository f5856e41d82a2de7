//! Statements about many rows: leases that are claimed, renewed and released in batches, and ranges of names that are read in chunks.

pub(crate) mod busy_rows;
pub(crate) mod claims;
pub(crate) mod releases;
pub(crate) mod scan;
pub(crate) mod statements;
pub(crate) mod sweep;
