//! A cache that many processes read: who finds it old makes it anew, alone, and the others wait for that and read the result.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin cache -- file:/tmp/locks /tmp/rates 2026-05-01
//! ```
//!
//! Readers share the lock, so that they do not wait for each other. The writer looks again, because another may have been
//! quicker, and goes on as a reader: nobody can replace the file between its write and its read.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::error::Error;
use std::time::Duration;
use std::{fs, io};

use leasehold::{LockOptions, RwLocker, RwLockerExt};

const KEY: &str = "cache/rates";

type Answer<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, file, day] = &arguments[..] else { return Err("usage: cache URL FILE DAY".into()) };
    let locks = leasehold::connect(url).await?;
    let rw =
        locks.rw().ok_or("this store has no readers beside writers: take file:, redis-rw:, mysql-rw: or postgres:")?;
    println!("{}", rates_of(day, &*rw, file).await?);
    locks.close().await;
    Ok(())
}

async fn rates_of(day: &str, rw: &dyn RwLocker, file: &str) -> Answer<String> {
    let reader = rw.read(KEY).await?;
    if let Some(rates) = cached(file, day)? {
        return Ok(rates); // the guard is dropped, which releases it
    }
    reader.release().await?;

    let writer = rw.write(KEY).await?;
    if cached(file, day)?.is_none() {
        fs::write(file, fetch(day).await)?;
    }
    let reader = writer.downgrade(&LockOptions::new()).await?;
    let rates = cached(file, day)?.ok_or("somebody wrote without the lock")?;
    reader.release().await?;
    Ok(rates)
}

/// The rates in the cache, if they are of this day.
fn cached(file: &str, day: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text.starts_with(day).then_some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is slow, or costs money, and shall be done once a day.
async fn fetch(day: &str) -> String {
    tokio::time::sleep(Duration::from_millis(200)).await;
    format!("{day}: rates fetched by process {}", std::process::id())
}
