//! A write to Redis that a late holder cannot make, although it still believes that it holds the lock.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin fenced_redis -- redis://127.0.0.1
//! ```
//!
//! The hash `account:7` has a field `fence` beside what is written: `balance`. One script compares and writes.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::error::Error;
use std::time::Duration;

use leasehold::fenced::{Outcome, REDIS_WRITE};
use leasehold::{FencingToken, LockOptions, LockerExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Client, Script};

type Answer<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Answer<()> {
    let url = std::env::args().nth(1).ok_or("usage: fenced_redis URL")?;
    let mut redis = Client::open(url.as_str())?.get_multiplexed_async_connection().await?;

    // A program takes the lock, and is paused for so long that its lease ends.
    let (one, other) = (leasehold::connect(&url).await?, leasehold::connect(&url).await?);
    let paused = LockOptions::new().ttl(Duration::from_millis(200)).renew(false);
    let late = one.lock_with("account/7", &paused).await?;
    // Another one gets it, and writes.
    let next = other.lock("account/7").await?;
    println!("the next holder: {:?}", write(&mut redis, next.fencing_token(), 120).await?);
    // The first goes on.
    println!("the late holder: {:?}", write(&mut redis, late.fencing_token(), 90).await?);

    let balance: Option<i64> = redis.hget("account:7", "balance").await?;
    println!("the balance is {balance:?}");
    next.release().await?;
    one.close().await;
    other.close().await;
    Ok(())
}

/// Sets the balance, unless the hash has seen a larger token.
async fn write(redis: &mut MultiplexedConnection, token: Option<FencingToken>, balance: i64) -> Answer<Outcome> {
    let token = token.ok_or("this store has no tokens")?;
    let script = Script::new(REDIS_WRITE);
    let mut write = script.prepare_invoke();
    write.key("account:7").arg(token.get()).arg("balance").arg(balance);
    let seen: u64 = write.invoke_async(redis).await?;
    Ok(Outcome::of(token, seen))
}
