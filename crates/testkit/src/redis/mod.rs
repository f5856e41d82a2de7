//! Redis servers, a fake server, and what every backend on Redis is tested for.
//!
//! A server listens on a free port of 127.0.0.1, keeps its files in a temporary folder, and ends when its value is dropped.

mod cluster;
mod fake_redis;
mod least_user;
mod malformed;
mod recorder;
mod refusals;
mod rig;
mod scenario;
mod sentinels;
mod server;

pub use self::cluster::{Cluster, Moving};
pub use self::fake_redis::FakeRedis;
pub use self::least_user::LeastUser;
pub use self::malformed::{MALFORMED, rejects_malformed_answers};
pub use self::recorder::Recorder;
pub use self::refusals::{
    a_release_by_force_is_told, a_release_by_force_signals_nobody, commands_are_taken_from_a_holder,
};
pub use self::rig::{Borrow, Servers};
pub use self::scenario::{Scenario, Unreported};
pub use self::sentinels::{Layout, Sentinels};
pub use self::server::{Server, ask};
pub use crate::launch::resp::Answer;
