#![doc = include_str!("../README.md")]

// In reading order: connecting by a URL,
mod connect;
// which kinds of store there are,
mod kinds;
mod unknown_scheme;
// those that are built in,
mod backends;
// the URL itself, which may contain a password,
mod address;
// and what is written under a lock.
pub mod fenced;

pub use leasehold_core::*;

pub use crate::address::Address;
#[allow(
    unreachable_pub,
    unused_imports,
    reason = "without the feature of a backend, there is no module to export"
)]
pub use crate::backends::*;
pub use crate::connect::connect;
pub use crate::kinds::{kind_of, kinds, register};
pub use crate::unknown_scheme::UnknownScheme;
