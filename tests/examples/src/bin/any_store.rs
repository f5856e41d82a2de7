//! The same program on any store: only the URL differs.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin any_store -- file:/tmp/locks redis://127.0.0.1 mysql://root@127.0.0.1/test
//! ```
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use leasehold::{Capability, Locker, LockerExt, Locks, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    for url in std::env::args().skip(1) {
        let locks = connect(&url).await?;
        store_of(&locks, &url).await?;
        locks.close().await;
    }
    Ok(())
}

/// Connects, and creates the tables of a store that has some.
async fn connect(url: &str) -> Result<Locks> {
    if let Some(tables) = leasehold::kind_of(url)?.tables {
        (tables.migrate)(url).await?;
    }
    leasehold::connect(url).await
}

/// All that follows knows no store: it takes any [`Locker`].
async fn store_of(locks: &impl Locker, url: &str) -> Result<()> {
    let guard = locks.lock("invoice/42").await?;
    let store = leasehold::Address::new(url); // which is shown without its password
    let capabilities = locks.capabilities();
    let readers = if capabilities.has(Capability::Shared) { "readers beside writers" } else { "writers only" };
    println!("{}: held on {}, {readers}", store.public(), capabilities.backend());
    guard.release().await?;
    Ok(())
}
