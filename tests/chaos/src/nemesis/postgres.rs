//! Faults of `PostgreSQL`.

use std::thread;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::scene::Scene;
use super::schedule::Planned;
use crate::fault::Fault;
use crate::stores::postgres::{ask, login, operator, sql};
use crate::stores::{Node, USER};

/// A server that goes on answers sooner.
const ANSWERS_WITHIN: Duration = Duration::from_millis(250);

pub(super) fn inflict(scene: &Scene<'_>, node: &Node, planned: &Planned) -> Result<u64, String> {
    match planned.fault {
        Fault::StopServer => stop(scene, node, planned.lasts),
        Fault::KillConnections => kill_connections(scene, node),
        Fault::NoConnectionsLeft => no_connections_left(scene, node, planned.lasts),
        Fault::LockedTable => locked_table(scene, node, planned.lasts),
        Fault::ReadOnly => read_only(scene, node, planned.lasts),
        other => Err(format!("{} is no fault of PostgreSQL", other.name())),
    }
}

/// The server's time in milliseconds since 1970.
pub(super) fn millis(scene: &Scene<'_>, node: &Node) -> Result<i64, String> {
    number(scene, node, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
}

/// The canary is a session of before that gets no answer: each session is a process.
fn stop(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    scene.runtime.block_on(async {
        let session = operator(node).await?;
        node.pause();
        let silent = !node.answers() && timeout(ANSWERS_WITHIN, ask(&session, "SELECT 1")).await.is_err();
        sleep(lasts).await;
        node.resume();
        Ok(u64::from(silent))
    })
}

fn kill_connections(scene: &Scene<'_>, node: &Node) -> Result<u64, String> {
    let all = format!(
        "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{USER}'"
    );
    number(scene, node, &all).map(i64::unsigned_abs)
}

/// The canary is a session that is not let in.
fn no_connections_left(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    sql(node, scene.runtime, &format!("ALTER ROLE {USER} CONNECTION LIMIT 0"))?;
    for link in &node.links {
        link.cut();
    }
    thread::sleep(lasts);
    let refused = scene.runtime.block_on(login(node, USER)).is_err_and(|why| why.starts_with("53300"));
    sql(node, scene.runtime, &format!("ALTER ROLE {USER} CONNECTION LIMIT -1"))?;
    Ok(u64::from(refused))
}

/// The canary are the statements that wait.
fn locked_table(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    scene.runtime.block_on(async {
        let session = operator(node).await?;
        ask(&session, "BEGIN; LOCK TABLE leasehold.locks, leasehold.readers").await?;
        let waiting =
            format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{USER}' AND wait_event_type = 'Lock'");
        let (mut waited, pauses) = (0, 10);
        for _ in 0..pauses {
            sleep(lasts / pauses).await;
            // It would else tell of the activity at its first look.
            ask(&session, "SELECT pg_stat_clear_snapshot()").await?;
            waited += of(&ask(&session, &waiting).await?)?.unsigned_abs();
        }
        ask(&session, "ROLLBACK").await?;
        Ok(waited)
    })
}

/// The canary is a statement that is refused.
fn read_only(scene: &Scene<'_>, node: &Node, lasts: Duration) -> Result<u64, String> {
    let set = |switch: &str| {
        sql(node, scene.runtime, &format!("ALTER SYSTEM SET default_transaction_read_only = {switch}"))?;
        sql(node, scene.runtime, "SELECT pg_reload_conf()")
    };
    set("on")?;
    thread::sleep(lasts);
    let written = scene.runtime.block_on(async {
        let session = login(node, USER).await?;
        ask(&session, "UPDATE leasehold.locks SET epoch = epoch WHERE name = 'no such name'").await
    });
    set("off")?;
    Ok(u64::from(written.is_err_and(|why| why.starts_with("25006"))))
}

fn number(scene: &Scene<'_>, node: &Node, statement: &str) -> Result<i64, String> {
    of(&sql(node, scene.runtime, statement)?)
}

fn of(told: &[String]) -> Result<i64, String> {
    told.first().and_then(|number| number.parse().ok()).ok_or_else(|| format!("{told:?} is no number"))
}
