//! Redis servers, a fake server, and what every backend on Redis is tested for.
//!
//! A server listens on a free port of 127.0.0.1, keeps its files in a temporary folder, and ends when its value is dropped.

mod acl;
mod cluster;
mod fake;
mod odd;
mod recorder;
mod refusals;
mod sentinels;
mod server;
mod story;

pub use self::acl::LeastUser;
pub use self::cluster::{Cluster, Moving};
pub use self::fake::Fake;
pub use self::odd::{ODD, believes_nothing};
pub use self::recorder::Recorder;
pub use self::refusals::{a_release_by_force_signals_nobody, commands_are_taken_from_a_holder};
pub use self::sentinels::{Layout, Sentinels};
pub use self::server::{Server, ask};
pub use self::story::{Story, Untold};
pub use crate::launch::resp::Answer;
