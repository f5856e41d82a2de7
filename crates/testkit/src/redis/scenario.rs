use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_core::{Admin, Capability, Error, ErrorKind, LockKey, LockOptions, Locker, LockerExt, Result, Wait};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, yield_now};

use super::least_user::LeastUser;
use super::recorder::Recorder;
use super::server::Server;
use crate::waiting::eventually;

/// What became of three who waited for a key, one behind the other, and of all else that can be asked for.
#[derive(Debug, Default)]
pub struct Scenario {
    served: Vec<usize>,
    refusals: Vec<Error>,
}

/// Parts of the warnings that are told of a missing command where nothing fails for it.
const WARNINGS: [&str; 3] =
    ["Redis refuses subscriptions", "does not let a release serve those who wait", "whether the server evicts"];

async fn scripts(server: Option<&Server>) -> u64 {
    match server {
        Some(server) => server.scripts().await,
        None => 0,
    }
}

impl Scenario {
    /// `locker` makes that of the holder (0) and those of the waiters (1 to 3). Each waiter asks this server when it
    /// begins to wait; without one, they stand in line in this process.
    pub async fn of<L: Locker + Admin + 'static>(
        asks: Option<&Server>,
        locker: impl AsyncFn(usize) -> Result<L>,
    ) -> Self {
        let mut scenario = Self::default();
        // Refusals may leave a key to its lease.
        let patient = LockOptions::new().ttl(Duration::from_secs(4)).wait(Wait::UpTo(Duration::from_secs(60)));
        let key = LockKey::new("k").expect("a key");
        let Some(holder) = scenario.note(locker(0).await) else { return scenario };
        let Some(Some(guard)) = scenario.note(holder.acquire(&key, &patient).await) else { return scenario };
        if holder.capabilities().has(Capability::Reentrancy)
            && let Some(Some(inner)) = scenario.note(holder.acquire(&key, &patient).await)
        {
            scenario.note(inner.release().await);
        }
        let (done, mut ended) = mpsc::unbounded_channel();
        let (mut waiting, taken) = (JoinSet::new(), Arc::new(AtomicBool::new(true)));
        for number in 1..=3 {
            let Some(waiter) = scenario.note(locker(number).await) else { return scenario };
            let asked = scripts(asks).await;
            let (done, taken, key, patient) = (done.clone(), Arc::clone(&taken), key.clone(), patient.clone());
            waiting.spawn(async move {
                let guard = waiter.acquire(&key, &patient).await?.expect("more than enough time");
                assert!(!taken.swap(true, Ordering::AcqRel), "two have the key");
                let _ = done.send(number);
                yield_now().await;
                taken.store(false, Ordering::Release);
                guard.release().await
            });
            yield_now().await;
            eventually("it is answered", async || asks.is_none() || scripts(asks).await > asked).await;
        }
        scenario.note(guard.renew().await);
        scenario.note(holder.list("", None).await);
        taken.store(false, Ordering::Release);
        scenario.note(guard.release().await);
        for released in waiting.join_all().await {
            scenario.note(released);
        }
        drop(done);
        while let Some(number) = ended.recv().await {
            scenario.served.push(number);
        }
        if holder.capabilities().has(Capability::Detach)
            && let Some(Some(guard)) = scenario.note(holder.acquire(&key, &patient).await)
            && let Ok(handed) = guard.detach()
            && let Some(Some(attached)) = scenario.note(holder.attach(&handed, &patient).await)
        {
            scenario.note(attached.release().await);
        }
        scenario.note(holder.inspect(&key).await);
        scenario.note(holder.force_release(&key).await);
        scenario
    }

    /// The value, or its refusal is noted down.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.refusals.push(error)).ok()
    }

    fn is_refused(&self, command: &str) -> bool {
        self.refusals.iter().any(|error| names(error, command))
    }
}

/// Whether it is a refusal for good that says which command the user lacks.
fn names(error: &Error, command: &str) -> bool {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    let told = format!("{error}: {cause}").to_lowercase();
    let named = [format!("'{command}'"), format!("({command})")].iter().any(|name| told.contains(name));
    error.kind() == ErrorKind::Backend && told.contains("acl") && named
}

impl LeastUser {
    /// Leaves each of the commands out once. Then each is named by an error or a warning, or is one of these, each with its `+`,
    /// that nobody's turn depends on; whoever is served is so in order; and all are where the README says what goes on without it.
    ///
    /// `run` gets the URLs of these servers as the user that lacks the command.
    pub async fn leave_out_each(
        &self,
        servers: &[Server],
        silent: &[&str],
        run: impl AsyncFn(Vec<String>) -> Scenario,
    ) {
        let everything = Box::pin(run(self.make_on(servers, &[]).await)).await;
        assert!(everything.refusals.is_empty() && everything.served == [1, 2, 3], "{everything:?}");
        for command in self.commands() {
            let log = Recorder::start();
            for server in servers {
                server.ask(&["FLUSHALL"]).await;
                server.ask(&["SCRIPT", "FLUSH"]).await;
            }
            let scenario = Box::pin(run(self.make_on(servers, &[command]).await)).await;
            let (name, recorded) = (command.trim_start_matches('+'), log.recorded());
            assert!(scenario.served.is_sorted(), "{command}: {scenario:?}");
            if self.can_do_without(command) {
                assert_eq!(scenario.served, [1, 2, 3], "{command}: {scenario:?}");
                assert!(scenario.refusals.iter().all(|error| names(error, name)), "{command}: {scenario:?}");
            } else {
                let warned = recorded.to_lowercase().contains(&format!("({name})"));
                assert!(scenario.is_refused(name) || warned, "{command}: {scenario:?}");
            }
            let told = scenario.is_refused(name) || WARNINGS.iter().any(|told| recorded.contains(told));
            assert!(told || silent.contains(&command), "{command} is missing and nothing says so: {scenario:?}");
        }
    }

    /// Makes it on each of these servers, but for some of its commands. How to connect as it, server by server.
    pub async fn make_on(&self, servers: &[Server], without: &[&str]) -> Vec<String> {
        let mut urls = Vec::new();
        for server in servers {
            urls.push(self.make(server, without).await);
        }
        urls
    }
}
