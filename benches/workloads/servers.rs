//! The servers that a workload talks to: its own, which end with it.

use leasehold_testkit::redis::Server;

use crate::contenders::Locks;
use crate::job::runtime;
use crate::load::Result;

/// One Redis.
pub(crate) struct Redis(Server);

impl Redis {
    /// `None`: it is not installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        Ok(runtime(0)?.block_on(Server::start(&[])).map(Self))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    pub(crate) fn ours(&self) -> Locks {
        Locks::RedisSingle { url: self.url(), local_handoff: true }
    }

    /// With the pauses that it makes by default: 200 ms at most.
    pub(crate) fn rslock(&self) -> Locks {
        Locks::Rslock { urls: vec![self.url()], retry_millis: 200 }
    }

    /// How often it has carried out these commands. What a script does counts as well.
    pub(crate) fn calls(&self, commands: &[&str]) -> Result<u64> {
        let calls = commands.iter().map(|command| self.0.calls(command));
        Ok(runtime(0)?.block_on(futures::future::join_all(calls)).into_iter().sum())
    }
}

/// Five that know nothing of each other.
pub(crate) struct FiveNodes(Vec<Server>);

impl FiveNodes {
    /// `None`: Redis is not installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        let five = (0..5).map(|_| Server::start(&[]));
        let started: Option<Vec<Server>> = runtime(0)?.block_on(futures::future::join_all(five)).into_iter().collect();
        Ok(started.map(Self))
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// Two of them stop in their tracks.
    pub(crate) fn stop_two(&self) {
        self.0[3..].iter().for_each(Server::pause);
    }

    /// They go on, and have caught up with what was sent to them when this returns.
    pub(crate) fn resume_two(&self) -> Result<()> {
        let two = &self.0[3..];
        two.iter().for_each(Server::resume);
        runtime(0)?.block_on(futures::future::join_all(two.iter().map(|server| server.ask(&["PING"]))));
        Ok(())
    }
}
