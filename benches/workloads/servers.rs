//! The servers that a workload talks to: its own, which end with it.

use leasehold_redis::testing::Server;

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
        Locks::RedisSingle { url: self.url(), hand_over: true }
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

    /// Does something while two of them are stopped in their tracks.
    pub(crate) fn without_two<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let two = &self.0[3..];
        two.iter().for_each(Server::pause);
        let done = work();
        two.iter().for_each(Server::resume);
        // They have much to catch up with, which is not to slow down whoever comes next.
        runtime(0)?.block_on(async {
            for server in two {
                server.ask(&["PING"]).await;
            }
        });
        done
    }
}
