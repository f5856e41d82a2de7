//! Claims and releases of many callers in one statement, although none of them asked for it.

pub(crate) mod claims;
