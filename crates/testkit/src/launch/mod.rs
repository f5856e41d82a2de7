//! Starts server programs: the one place of the workspace that runs `redis-server` and `mariadbd`.
//!
//! This module uses the standard library alone, so that `cargo xtask` compiles no driver and no runtime for it. Its
//! functions block; [`redis`](crate::redis) and [`mysql`](crate::mysql) call them from threads of their own.

pub mod mariadb;
mod ports;
mod process;
mod programs;
pub mod redis;
pub mod resp;

pub use self::ports::free_port;
pub use self::process::{Identity, Lifetime, Process};
pub use self::programs::{find, is_root};

/// What a server is started with, beside what the launcher sets itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Further arguments.
    pub arguments: Vec<String>,
    /// Environment variables, each as `NAME=value`. They reach the server alone.
    pub variables: Vec<String>,
}

impl Settings {
    /// These arguments, and no variables.
    pub fn arguments(arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(ToString::to_string).collect(), variables: Vec::new() }
    }
}

/// Starts a server on a free port, and on another one if somebody took the port in between.
fn on_a_free_port(start: impl Fn(u16) -> Result<Process, String>) -> Result<Process, String> {
    let mut tries = 10;
    loop {
        tries -= 1;
        match start(free_port()?) {
            Err(why) if tries > 0 && why.contains("Address already in use") => {}
            outcome => return outcome,
        }
    }
}
