//! Starts server programs: the one place of the workspace that runs `redis-server`, `mariadbd`, `postgres` and `etcd`.
//!
//! This module uses the standard library alone, so that `cargo xtask` compiles no driver and no runtime for it. Its functions
//! block; [`redis`](crate::redis) and [`mysql`](crate::mysql) call them from threads of their own. The error of a server that does
//! not start has the end of its log.

pub mod etcd;
pub mod mariadb;
mod place;
mod ports;
pub mod postgres;
mod process;
mod programs;
pub mod redis;
pub mod resp;
mod settings;
pub mod socket;

pub use self::place::place;
pub use self::ports::{first_bytes, free_port};
pub use self::process::{Launch, Process};
pub use self::programs::{find, is_root};
pub use self::settings::Settings;
