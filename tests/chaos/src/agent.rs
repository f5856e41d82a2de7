//! An agent, as a process of its own.

use std::future::pending;
use std::path::Path;

use leasehold_agent::{Agent, Policy, Systemd};
use leasehold_core::{Locks, Wait, connect_within};
use leasehold_redis_rw::RedisRw;

/// Serves the store at this URL until it is killed.
pub(crate) fn run(socket: &str, url: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let connected = connect_within(Wait::Forever, || RedisRw::connect(url)).await;
        let locks = connected.map(Locks::shared).map_err(|error| error.to_string())?;
        let policy = Policy::parse("* * keys=100000 connections=1000")?;
        let agent = Agent::new(locks, "", policy, Systemd::default());
        agent.run(Path::new(socket), pending()).await.map(drop).map_err(|error| error.to_string())
    })
}
