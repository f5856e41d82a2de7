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
pub use self::malformed::{MALFORMED, malformed_answers_are_rejected, rejects_malformed_answers};
pub use self::recorder::Recorder;
pub use self::refusals::{
    a_claim_that_is_refused_leaves_no_lock, a_grant_that_was_overwritten_is_lost_and_touches_no_other,
    a_release_by_force_is_told, a_release_by_force_signals_nobody, commands_are_taken_from_a_holder, user,
    what_somebody_else_wrote_is_named_and_left_alone,
};
pub use self::rig::{Borrow, Servers};
pub use self::scenario::Scenario;
pub use self::sentinels::Sentinels;
pub use self::server::{Server, ask};
pub use crate::launch::resp::Answer;
