//! What is compared on MySQL: floors, and the lock that blogs describe, through the driver and settings that ours use.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Opts, OptsBuilder, Pool, PoolConstraints, PoolOpts};
use tokio::time::sleep;

use crate::load::{Contender, Key, Result};

/// As many connections as ours have, kept as ours are.
pub(crate) fn pool(url: &str) -> Result<Pool> {
    let constraints = PoolConstraints::new(0, 32).ok_or("0 is more than 32")?;
    let opts = PoolOpts::new().with_constraints(constraints).with_reset_connection(false);
    let opts = opts.with_inactive_connection_ttl(Duration::from_secs(60));
    Ok(Pool::new(OptsBuilder::from_opts(Opts::from_url(url)?).pool_opts(opts)))
}

/// `SELECT 1`.
pub(crate) struct Select(pub(crate) Pool);

impl Contender for Select {
    type Held = ();

    async fn acquire(&self, _key: &Key) -> Result<()> {
        Ok(self.0.get_conn().await?.exec_drop("SELECT 1", ()).await?)
    }

    async fn release(&self, _key: &Key, _held: ()) -> Result<()> {
        Ok(())
    }
}

/// Two updates of a row by its key.
pub(crate) struct Updates(Pool);

impl Updates {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let pool = pool(url)?;
        let mut session = pool.get_conn().await?;
        session.query_drop("CREATE TABLE IF NOT EXISTS floor (name VARBINARY(255) PRIMARY KEY, n BIGINT)").await?;
        // One for each task of the largest load.
        let rows = (0..256).map(|number| (format!("bench/{number}"),));
        session.exec_batch("INSERT IGNORE INTO floor VALUES (?, 0)", rows).await?;
        drop(session);
        Ok(Self(pool))
    }

    async fn update(&self, name: &str) -> Result<()> {
        let mut session = self.0.get_conn().await?;
        session.exec_drop("UPDATE floor SET n = n + 1 WHERE name = ?", (name,)).await?;
        if session.affected_rows() == 1 { Ok(()) } else { Err("the floor has no such row".into()) }
    }
}

impl Contender for Updates {
    type Held = ();

    async fn acquire(&self, key: &Key) -> Result<()> {
        self.update(key.name.as_str()).await
    }

    async fn release(&self, key: &Key, _held: ()) -> Result<()> {
        self.update(key.name.as_str()).await
    }
}

/// Inserts a row under a unique name, and deletes it; without lease, owner or token. It waits by trying again.
pub(crate) struct InsertDelete(Pool);

impl InsertDelete {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let pool = pool(url)?;
        let table = "CREATE TABLE IF NOT EXISTS insert_delete (id BIGINT AUTO_INCREMENT PRIMARY KEY, \
                     name VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL, UNIQUE KEY (name))";
        pool.get_conn().await?.query_drop(table).await?;
        Ok(Self(pool))
    }

    /// Whether it was done: not if the row is there, or InnoDB chose this session as the victim of a deadlock.
    async fn done(&self, statement: &str, name: &str) -> Result<bool> {
        match self.0.get_conn().await?.exec_drop(statement, (name,)).await {
            Ok(()) => Ok(true),
            Err(Error::Server(refusal)) if [1062, 1205, 1213].contains(&refusal.code) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl Contender for InsertDelete {
    type Held = ();

    async fn acquire(&self, key: &Key) -> Result<()> {
        while !self.done("INSERT INTO insert_delete (name) VALUES (?)", key.name.as_str()).await? {
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    async fn release(&self, key: &Key, _held: ()) -> Result<()> {
        while !self.done("DELETE FROM insert_delete WHERE name = ?", key.name.as_str()).await? {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}
