//! A server that falls silent while a line of waiters stands. The tests start it; without `redis-server` they are ignored.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_redis_single::{LockGuard, LockerExt, RedisSingle, Result};
use leasehold_testkit::redis::Server;
use leasehold_testkit::{eventually, needs, test};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::waiters::{LINE, LOCK, locker, places};

/// As long as a place counts, and longer than a command may take.
const SILENCE: Duration = Duration::from_secs(3);

/// Who waits for the key, each through a locker and connections of its own.
struct Line {
    waiters: JoinSet<Result<()>>,
    order: Arc<Mutex<Vec<usize>>>,
}

impl Line {
    const LENGTH: usize = 8;

    /// One behind the other.
    async fn form(server: &Server) -> Result<Self> {
        let (mut waiters, order) = (JoinSet::new(), Arc::<Mutex<Vec<_>>>::default());
        for waiter in 0..Self::LENGTH {
            let (locks, order) = (locker(server).await?, Arc::clone(&order));
            waiters.spawn(async move {
                let guard = locks.lock("k").await?;
                order.lock().unwrap().push(waiter);
                guard.release().await.map(drop)
            });
            eventually("it has a place", async || places(server).await > waiter).await;
        }
        Ok(Self { waiters, order })
    }

    async fn ends_in_order(mut self, server: &Server) -> Result<()> {
        while let Some(served) = self.waiters.join_next().await {
            served.unwrap()?;
        }
        assert_eq!(*self.order.lock().unwrap(), (0..Self::LENGTH).collect::<Vec<_>>());
        eventually("nothing is left", async || server.ask(&["EXISTS", LOCK, LINE]).await.number() == 0).await;
        Ok(())
    }
}

/// A lock on the key; the server knows all scripts.
async fn held(server: &Server) -> Result<(RedisSingle, LockGuard)> {
    let holder = locker(server).await?;
    let _ = holder.lock("k").await?.release().await?;
    let guard = holder.lock("k").await?;
    Ok((holder, guard))
}

/// A release in the silence is the first thing that the server hears, when nobody's place counts any more.
#[test]
async fn a_server_that_is_silent_for_seconds_keeps_the_order_of_the_queue() -> Result<()> {
    for is_released_in_the_silence in [false, true] {
        let server = needs("redis-server", Server::start(&[]).await);
        let (_holder, guard) = held(&server).await?;
        let (line, mut guard) = (Line::form(&server).await?, Some(guard));
        server.pause();
        drop(guard.take_if(|_| is_released_in_the_silence));
        sleep(SILENCE).await;
        server.resume();
        drop(guard);
        line.ends_in_order(&server).await?;
    }
    Ok(())
}
