//! Faults of `MariaDB`.

use std::thread;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

use super::scene::Scene;
use super::schedule::Planned;
use crate::fault::Fault;
use crate::stores::{Node, USER};

/// The fewest that the server permits.
const FEWEST_CONNECTIONS: u64 = 10;

/// What the server says of a statement that has waited long enough for a lock.
const LOCK_WAIT_TIMEOUT: u16 = 1205;

pub(super) fn inflict(scene: &Scene<'_>, node: &Node, planned: &Planned) -> Result<u64, String> {
    match planned.fault {
        Fault::KillConnections => kill_connections(scene, node),
        Fault::NoConnectionsLeft => no_connections_left(scene, node, planned.lasts),
        Fault::LockedTable => locked_table(scene, node, planned.lasts),
        Fault::ReadOnly => read_only(scene, node, planned.lasts),
        other => Err(format!("{} is no fault of MariaDB", other.name())),
    }
}

/// The server's time in milliseconds since 1970.
pub(super) fn millis(scene: &Scene<'_>, node: &Node) -> Result<i64, String> {
    let told = node.sql(scene.runtime, "SELECT CAST(CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED) AS CHAR)")?;
    told.first().and_then(|millis| millis.parse().ok()).ok_or_else(|| format!("the time is {told:?}"))
}

fn kill_connections(scene: &Scene<'_>, node: &Node) -> Result<u64, String> {
    let all = format!("SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE user = '{USER}'");
    let mut killed = 0;
    for id in node.sql(scene.runtime, &all)? {
        // It may have ended by itself.
        killed += u64::from(node.sql(scene.runtime, &format!("KILL CONNECTION {id}")).is_ok());
    }
    Ok(killed)
}

/// Over one connection, because another one may not be let in. The canary is one that is not.
fn no_connections_left(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    let failed = |error: mysql_async::Error| error.to_string();
    scene.runtime.block_on(async {
        let mut inside = node.session().await?;
        inside.query_drop(format!("SET GLOBAL max_connections = {FEWEST_CONNECTIONS}")).await.map_err(failed)?;
        for link in &node.links {
            link.cut();
        }
        let (mut refused, mut others) = (0, Vec::new());
        for _ in 0..=FEWEST_CONNECTIONS {
            match login(node).await {
                Ok(other) => others.push(other),
                Err(why) => refused += u64::from(why.contains("1040") || why.contains("Too many connections")),
            }
        }
        tokio::time::sleep(lasts).await;
        inside.query_drop("SET GLOBAL max_connections = 500").await.map_err(failed)?;
        Ok(refused)
    })
}

/// The canary are the statements that wait: none may at a single look, when the clients are on their way back. With a clock that
/// was set back, the server takes each wait for a lock as over at once, and the canary is a statement that ends so.
fn locked_table(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    let tables = node.sql(scene.runtime, "SHOW TABLES FROM leasehold LIKE 'leasehold%'")?;
    let locks: Vec<String> = tables.iter().map(|table| format!("{table} WRITE")).collect();
    let failed = |error: mysql_async::Error| error.to_string();
    scene.runtime.block_on(async {
        let mut session = node.session().await?;
        session.query_drop(format!("LOCK TABLES {}", locks.join(", "))).await.map_err(failed)?;
        let waiting = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{USER}' AND state LIKE 'Waiting for%'"
        );
        let (mut waited, pauses) = (0, 10);
        for _ in 0..pauses {
            tokio::time::sleep(lasts / pauses).await;
            let now: Option<u64> = session.query_first(&waiting).await.map_err(failed)?;
            waited += now.unwrap_or(0);
        }
        let refused = match tables.first().filter(|_| waited == 0) {
            Some(table) => {
                let write = format!("DELETE FROM leasehold.{table} WHERE name = 'no such name'");
                let mut client = login(node).await?;
                let asked = client.query_drop(format!("SET STATEMENT lock_wait_timeout = 1 FOR {write}")).await;
                asked.is_err_and(|why| matches!(why, mysql_async::Error::Server(why) if why.code == LOCK_WAIT_TIMEOUT))
            }
            None => false,
        };
        session.query_drop("UNLOCK TABLES").await.map_err(failed)?;
        Ok(waited + u64::from(refused))
    })
}

/// The canary is a statement that is refused.
fn read_only(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    node.sql(scene.runtime, "SET GLOBAL read_only = 1")?;
    let table = node.sql(scene.runtime, "SHOW TABLES FROM leasehold LIKE 'leasehold%'")?;
    let table = table.first().ok_or("there is no table")?;
    let written = scene.runtime.block_on(async {
        let mut session = login(node).await?;
        let write = format!("DELETE FROM leasehold.{table} WHERE name = 'no such name'");
        session.query_drop(write).await.map_err(|error| error.to_string())
    });
    thread::sleep(lasts);
    node.sql(scene.runtime, "SET GLOBAL read_only = 0")?;
    Ok(u64::from(written.is_err_and(|why| why.contains("read-only") || why.contains("read_only"))))
}

/// A session as a client has one.
async fn login(node: &Node) -> Result<Conn, String> {
    let settings = "prefer_socket=false&max_allowed_packet=16777216&wait_timeout=28800";
    let url = format!("mysql://{USER}@127.0.0.1:{}/leasehold?{settings}", node.port);
    let opts = Opts::from_url(&url).map_err(|error| error.to_string())?;
    Conn::new(opts).await.map_err(|error| error.to_string())
}
