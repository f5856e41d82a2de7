//! The connections to one server: its address, the pools, the sessions and the classification of failures.

pub(crate) mod address;
pub(crate) mod sessions;

pub(crate) mod connections;
pub(crate) mod pools;
pub(crate) mod session;

mod encryption;
pub(crate) mod failure;
mod identity;
mod parameters;
