//! A cron job on many hosts: each host starts this program at the same minute, and one of them does the job.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin cron -- redis://127.0.0.1 2026-05-01T03:00
//! ```
//!
//! The key has the time of the schedule in it, so that each time is won once. The winner does not release the lock after the
//! job: it detaches it, and the store keeps the key for the rest of the lease. A host whose clock is late by less than the lease
//! finds the key taken. A host that dies during the job is not replaced for that time of the schedule.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::error::Error;
use std::time::Duration;

use leasehold::{LockKey, LockOptions, LockerExt, Wait};

/// How much later than the others the last host may start. Longer than the job takes at most.
const LATEST: Duration = Duration::from_secs(600);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (url, time) = arguments.next().zip(arguments.next()).ok_or("usage: cron URL TIME")?;
    let locks = leasehold::connect(&url).await?;

    let key = LockKey::new(format!("report/{time}"))?;
    let options = LockOptions::new().ttl(LATEST).wait(Wait::Never);
    match locks.acquire(&key, &options).await? {
        None => println!("another host has the job of {time}"),
        Some(guard) => {
            report(&time).await;
            // The renewals end here, and the lease lasts.
            match guard.detach() {
                Ok(_kept) => println!("did the job of {time}"),
                Err(error) => println!("did the job of {time}, and the key is not kept: {error}"),
            }
        }
    }
    locks.close().await;
    Ok(())
}

/// The job.
async fn report(_time: &str) {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
