//! A write to MySQL or MariaDB that a late holder cannot make, although it still believes that it holds the lock.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin fenced_sql -- mysql://root@127.0.0.1/test
//! ```
//!
//! The table `account` has a column `fence` beside what is written: `balance`.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::error::Error;
use std::time::Duration;

use leasehold::fenced::{Outcome, SqlWrite};
use leasehold::{FencingToken, LockOptions, LockerExt};
use mysql_async::prelude::Queryable;
use mysql_async::{Opts, OptsBuilder, Pool};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)";

type Answer<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Answer<()> {
    let url = std::env::args().nth(1).ok_or("usage: fenced_sql URL")?;
    if let Some(tables) = leasehold::kind_of(&url)?.tables {
        (tables.migrate)(&url).await?;
    }
    // Without the setting, this driver may go on with a server at a path of this machine.
    let pool = Pool::new(OptsBuilder::from_opts(Opts::from_url(&url)?).prefer_socket(false));
    let mut session = pool.get_conn().await?;
    session.query_drop(TABLE).await?;
    session.exec_drop("INSERT IGNORE INTO account (id, balance) VALUES (?, ?)", (7, 100)).await?;

    // A program takes the lock, and is paused for so long that its lease ends.
    let (one, other) = (leasehold::connect(&url).await?, leasehold::connect(&url).await?);
    let paused = LockOptions::new().ttl(Duration::from_millis(200)).renew(false);
    let late = one.lock_with("account/7", &paused).await?;
    // Another one gets it, and writes.
    let next = other.lock("account/7").await?;
    println!("the next holder: {:?}", write(&pool, next.fencing_token(), 120).await?);
    // The first goes on.
    println!("the late holder: {:?}", write(&pool, late.fencing_token(), 90).await?);

    let balance: Option<i64> = session.exec_first("SELECT balance FROM account WHERE id = ?", (7,)).await?;
    println!("the balance is {balance:?}");
    next.release().await?;
    one.close().await;
    other.close().await;
    drop(session);
    pool.disconnect().await?;
    Ok(())
}

/// Sets the balance, unless the row has seen a larger token.
async fn write(pool: &Pool, token: Option<FencingToken>, balance: i64) -> Answer<Outcome> {
    let token = token.ok_or("this store has no tokens")?;
    let statement = SqlWrite::mysql("account", "id", "fence", &["balance"])?;
    let mut session = pool.get_conn().await?;
    let written = session.exec_iter(statement.update(), (balance, token.get(), 7, token.get())).await?;
    let rows = written.affected_rows();
    drop(written);
    let seen = if rows == 0 { session.exec_first(statement.seen(), (7,)).await? } else { None };
    SqlWrite::outcome(token, rows, seen).ok_or_else(|| "there is no such account".into())
}
