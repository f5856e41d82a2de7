//! What the README says of the least user. The tests start the servers they need; without `redis-server` they are ignored.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod recorder;
mod waiters;

use std::error::Error as _;
use std::time::Duration;

use leasehold_redis::testing::{LeastUser, Server, eventually};
use leasehold_redis_single::{
    Admin, Error, ErrorKind, LockKey, LockOptions, Locker, LockerExt, LossReason, RedisSingle, Result, Wait,
};
use leasehold_testkit::needs;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::waiters::{evaluations, key, locker_at};

const README: &str = include_str!("../README.md");

/// What is said of a command that is missing, where nothing fails for it.
const WARNINGS: [&str; 3] =
    ["Redis refuses subscriptions", "does not let a release serve those who wait", "whether the server evicts"];

/// What costs nobody its turn; an inbox is never unsubscribed from.
const UNSAID: [&str; 3] = ["+type", "+pubsub|numsub", "+unsubscribe"];

fn patiently() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)))
}

/// What became of three who waited one behind the other, and of all else that can be asked for.
#[derive(Debug, Default)]
struct Story {
    served: Vec<usize>,
    refusals: Vec<Error>,
}

impl Story {
    /// The value, or its refusal is noted down.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.refusals.push(error)).ok()
    }

    fn is_refused(&self, command: &str) -> bool {
        let names_it = |error: &Error| {
            let cause = error.source().map(ToString::to_string).unwrap_or_default().to_lowercase();
            let named = [format!("'{command}'"), format!("({command})")].iter().any(|name| cause.contains(name));
            error.kind() == ErrorKind::Backend && error.to_string().contains("ACL") && named
        };
        self.refusals.iter().any(names_it)
    }

    async fn of(server: &Server, url: &str) -> Self {
        let mut story = Self::default();
        let Some(holder) = story.note(locker_at(url).await) else { return story };
        let Some(guard) = story.note(holder.lock("k").await) else { return story };
        let (done, mut ended) = mpsc::unbounded_channel();
        let mut waiting = JoinSet::new();
        for number in 0..3 {
            let Some(waiter) = story.note(locker_at(url).await) else { return story };
            let (asked, done) = (evaluations(server).await, done.clone());
            waiting.spawn(async move {
                let guard = waiter.acquire(&key(), &patiently()).await?.expect("more than enough time");
                let _ = done.send(number);
                guard.release().await
            });
            eventually("it is answered", async || evaluations(server).await > asked).await;
        }
        story.note(guard.renew().await);
        story.note(holder.list("", None).await);
        story.note(guard.release().await);
        while let Some(ended) = waiting.join_next().await {
            story.note(ended.expect("no panic"));
        }
        drop(done);
        while let Some(number) = ended.recv().await {
            story.served.push(number);
        }
        story.note(holder.inspect(&key()).await);
        story.note(holder.force_release(&key()).await);
        story
    }
}

async fn the_least_privileges_are_enough_for_everything() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let url = LeastUser::of(README).make(&server, &[]).await;
    let (here, there) = (RedisSingle::connect(&url).await?, RedisSingle::connect(&url).await?);
    let key = LockKey::new("k")?;
    let guard = here.lock("k").await?;
    guard.renew().await?;
    let waiting = tokio::spawn({
        let there = there.clone();
        async move { there.acquire(&LockKey::new("k")?, &patiently()).await }
    });
    let has_a_place = async || server.ask(&["EXISTS", "{leasehold:k}:line"]).await.number() == 1;
    eventually("the waiter has a place", has_a_place).await;
    assert_eq!(here.list("", None).await?.keys.len(), 1);
    let _ = guard.release().await?;
    let guard = waiting.await.unwrap()?.unwrap();
    assert_eq!(here.inspect(&key).await?.holders.len(), 1);
    assert_eq!(here.force_release(&key).await?.holders.len(), 1);
    assert_eq!(guard.renew().await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ForceReleased));
    Ok(())
}

async fn without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says() {
    let server = needs("redis-server", Server::start(&[]).await);
    let least = LeastUser::of(README);
    let everything = Story::of(&server, &least.make(&server, &[]).await).await;
    assert!(everything.refusals.is_empty() && everything.served == [0, 1, 2], "{everything:?}");
    for command in least.commands() {
        let recorder = recorder::Recorder::start();
        server.ask(&["FLUSHALL"]).await;
        server.ask(&["SCRIPT", "FLUSH"]).await;
        let story = Story::of(&server, &least.make(&server, &[command]).await).await;
        let name = command.trim_start_matches('+');
        assert!(story.served.is_sorted(), "{command}: {story:?}");
        if least.can_do_without(command) {
            assert_eq!(story.served, [0, 1, 2], "{command}: {story:?}");
            assert!(story.refusals.iter().all(|_| story.is_refused(name)), "{command}: {story:?}");
        } else {
            let warned = recorder.recorded().to_lowercase().contains(&format!("({name})"));
            assert!(story.is_refused(name) || warned, "{command}: {story:?}");
        }
        let told = story.is_refused(name) || WARNINGS.iter().any(|told| recorder.recorded().contains(told));
        assert!(told || UNSAID.contains(&command), "{command} is missing and nothing says so");
    }
}

leasehold_testkit::main! {
    the_least_privileges_are_enough_for_everything,
    without_any_one_of_its_commands_it_is_refused_or_all_is_in_order_as_the_readme_says,
}
