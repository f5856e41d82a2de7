//! Claims and releases of many callers in one statement, although none of them asked for it.

mod busy_keys;
pub(crate) mod claims;
