#![doc = include_str!("../README.md")]

mod connection;
mod protocol;
// what that is made of,
mod grant;
mod pipe;
// and all connections of one host.
#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod peer;
mod policy;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod systemd;

#[cfg(target_os = "linux")]
pub use agent::{Agent, Stopped};
pub use connection::{Begin, End, Stop, Suspended, serve};
pub use policy::{Limits, Policy};
pub use protocol::{
    Access, Answer, HolderFields, LONGEST_LINE, Line, MOST_KEYS, Refusal, Request, VERSION, kind_name, mode_name, parse,
};
#[cfg(target_os = "linux")]
pub use systemd::Systemd;
