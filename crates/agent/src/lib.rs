#![doc = include_str!("../README.md")]

// A client that asks for a lock, in any language,
mod connection;
mod protocol;
// what that is made of,
mod grant;
mod pipe;
// all connections of one host,
#[cfg(target_os = "linux")]
mod agent;
mod policy;
// and the backend for programs in Rust, whose steps an agent passes on.
#[cfg(unix)]
mod backend;
#[cfg(unix)]
mod builder;
#[cfg(unix)]
mod client;
#[cfg(unix)]
mod kind;
#[cfg(unix)]
mod locker;
mod wire;

pub use leasehold_core::*;

#[cfg(target_os = "linux")]
pub use agent::{Agent, Systemd};
#[cfg(unix)]
pub use backend::AgentBackend;
#[cfg(unix)]
pub use builder::AgentBuilder;
pub use connection::{Begin, End, Rest, Stop, Suspended, serve};
#[cfg(unix)]
pub use kind::KIND;
#[cfg(unix)]
pub use locker::AgentLocks;
pub use policy::{Limits, Policy};
pub use protocol::{Access, HolderFields, Refusal, Request, kind_name};
