//! Redis servers, a fake server and a network with faults, for tests.
//!
//! A server listens on a free port of 127.0.0.1, keeps its files in a temporary directory, and ends when its value is
//! dropped.

use std::time::Duration;

use tokio::time::{sleep, timeout};

mod acl;
mod ask;
mod fake;
mod odd;
mod proxy;
mod recorder;
mod refusals;
mod server;
mod story;
mod topologies;

pub use self::acl::LeastUser;
pub use self::ask::{Answer, ask};
pub use self::fake::Fake;
pub use self::odd::{ODD, believes_nothing};
pub use self::proxy::Proxy;
pub use self::recorder::Recorder;
pub use self::refusals::{a_release_by_force_signals_nobody, commands_are_taken_from_a_holder};
pub use self::server::Server;
pub use self::story::{Story, Untold};
pub use self::topologies::{Cluster, Layout, Moving, Sentinels};

/// Polls until it is so.
///
/// # Panics
/// When it is not within a minute.
pub async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let seen = async {
        while !is_so().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(Duration::from_secs(60), seen).await.is_ok(), "not within a minute: {what}");
}
