//! A program without an async runtime: threads and processes count in one file, one after the other.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin counter -- file:/tmp/locks /tmp/count 100
//! ```
//!
//! `blocking::Locks` renews the leases on a thread of its own.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::error::Error;
use std::{fs, io, thread};

use leasehold::{Locks, blocking};

type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, file, times] = &arguments[..] else { return Err("usage: counter URL FILE TIMES".into()) };
    let times: u64 = times.parse()?;
    let locks = blocking::Locks::connect(|| leasehold::connect(url))?;
    let counted = thread::scope(|scope| {
        let threads = [0; 2].map(|_| scope.spawn(|| (0..times).try_for_each(|_| count(&locks, file))));
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Err("a thread panicked".into())))
    });
    locks.block_on(locks.locker().close())?;
    counted?;
    println!("counted {} times", 2 * times);
    Ok(())
}

/// Reads the number and writes the next one. Without the lock two would read the same number.
fn count(locks: &blocking::Locks<Locks>, file: &str) -> Answer<()> {
    let guard = locks.lock("count")?;
    let before = match fs::read_to_string(file) {
        Ok(number) => number.trim().parse()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error.into()),
    };
    fs::write(file, u64::to_string(&(before + 1)))?;
    guard.release()?;
    Ok(())
}
