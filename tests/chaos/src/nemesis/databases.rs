//! Faults of `MariaDB` and `PostgreSQL`: the same ones, in other statements.

use std::thread;
use std::time::Duration;

use crate::stores::{Node, Program, Session, sql};

/// The fewest connections that `MariaDB` permits.
const FEWEST_CONNECTIONS: usize = 10;

/// What servers say that let nobody in.
const FULL: [&str; 3] = ["1040", "Too many connections", "53300"];

/// How often is looked for statements that wait.
const LOOKS: u32 = 10;

/// What an operator says to a server, and a client of his.
struct Statements {
    /// The server's time in milliseconds since 1970.
    millis: &'static str,
    /// The first one counts.
    kill_connections: &'static [&'static str],
    /// Let no more connections in, and let them in again.
    full: [&'static str; 2],
    /// The names of all tables. The first one has keys.
    tables: &'static str,
    lock: fn(&[String]) -> String,
    unlock: &'static str,
    /// Counts the statements of clients that wait for a lock.
    waiting: &'static str,
    /// Before a statement: has it wait for no longer than a second; and the code of one that has.
    impatient: [&'static str; 2],
    /// Take no writes, and take them again.
    read_only: [&'static [&'static str]; 2],
}

const MARIADB: Statements = Statements {
    millis: "SELECT CAST(CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED) AS CHAR)",
    kill_connections: &[
        "SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist WHERE user = 'locks'",
        "KILL CONNECTION USER locks",
    ],
    full: ["SET GLOBAL max_connections = 10", "SET GLOBAL max_connections = 500"],
    tables: "SELECT CONCAT('leasehold.', table_name) FROM information_schema.tables WHERE table_schema = 'leasehold' AND \
             table_name LIKE 'leasehold%' ORDER BY table_name",
    lock: |tables| format!("LOCK TABLES {} WRITE", tables.join(" WRITE, ")),
    unlock: "UNLOCK TABLES",
    waiting: "SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist WHERE user = 'locks' AND state LIKE \
              'Waiting for%'",
    impatient: ["SET STATEMENT lock_wait_timeout = 1 FOR ", "1205"],
    read_only: [&["SET GLOBAL read_only = 1"], &["SET GLOBAL read_only = 0"]],
};

const POSTGRES: Statements = Statements {
    millis: "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    kill_connections: &[
        "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'locks'",
    ],
    full: ["ALTER ROLE locks CONNECTION LIMIT 0", "ALTER ROLE locks CONNECTION LIMIT -1"],
    tables: "SELECT unnest(ARRAY['leasehold.locks', 'leasehold.readers'])",
    lock: |tables| format!("BEGIN; LOCK TABLE {}", tables.join(", ")),
    unlock: "ROLLBACK",
    // It would else tell of the activity at its first look.
    waiting: "SELECT pg_stat_clear_snapshot(); SELECT count(*) FROM pg_stat_activity WHERE usename = 'locks' AND \
              wait_event_type = 'Lock'",
    impatient: ["SET lock_timeout = '1s'; ", "55P03"],
    read_only: [
        &["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"],
        &["ALTER SYSTEM SET default_transaction_read_only = off", "SELECT pg_reload_conf()"],
    ],
};

fn of(node: &Node) -> &'static Statements {
    if node.program == Program::Postgres { &POSTGRES } else { &MARIADB }
}

/// A write of a client that changes nothing.
fn write(table: &str) -> String {
    format!("DELETE FROM {table} WHERE name = 'no such name'")
}

/// The server's time in milliseconds since 1970.
pub(super) fn millis(node: &Node) -> Result<i64, String> {
    Session::of_an_operator(node)?.number(of(node).millis)
}

/// The canary is the number of connections that there were.
pub(super) fn kill_connections(node: &Node) -> Result<u64, String> {
    let mut session = Session::of_an_operator(node)?;
    let killed = of(node).kill_connections.iter().map(|statement| session.number(statement));
    Ok(killed.sum::<Result<i64, String>>()?.unsigned_abs())
}

/// Over one connection, because another one may not be let in. The canary is one that is not.
pub(super) fn no_connections_left(node: &Node, lasts: Duration) -> Result<u64, String> {
    let (mut inside, [full, as_before]) = (Session::of_an_operator(node)?, of(node).full);
    inside.ask(full)?;
    for link in &node.links {
        link.cut();
    }
    let others: Vec<_> = (0..=FEWEST_CONNECTIONS).map(|_| Session::of_a_client(node)).collect();
    thread::sleep(lasts);
    inside.ask(as_before)?;
    let is_refusal = |why: &&String| FULL.iter().any(|code| why.contains(code));
    Ok(others.iter().filter_map(|other| other.as_ref().err()).filter(is_refusal).count() as u64)
}

/// The canary are the statements that wait: none may at a single look, when the clients are on their way back. With a clock that
/// was set back, `MariaDB` takes each wait for a lock as over at once, and the canary is a statement that ends so.
pub(super) fn locked_table(node: &Node, lasts: Duration) -> Result<u64, String> {
    let (mut session, says) = (Session::of_an_operator(node)?, of(node));
    let tables = session.ask(says.tables)?;
    session.ask(&(says.lock)(&tables))?;
    let mut waited = 0;
    for _ in 0..LOOKS {
        thread::sleep(lasts / LOOKS);
        waited += session.number(says.waiting)?.unsigned_abs();
    }
    let [impatient, late] = says.impatient;
    let write = || format!("{impatient}{}", write(&tables[0]));
    let refused = waited == 0 && Session::of_a_client(node)?.ask(&write()).is_err_and(|why| why.starts_with(late));
    session.ask(says.unlock)?;
    Ok(waited + u64::from(refused))
}

/// The canary is a statement that is refused.
pub(super) fn read_only(node: &Node, lasts: Duration) -> Result<u64, String> {
    let [read_only, as_before] = of(node).read_only;
    let tables = sql(node, &[of(node).tables])?;
    sql(node, read_only)?;
    thread::sleep(lasts);
    let written = Session::of_a_client(node)?.ask(&write(&tables[0]));
    sql(node, as_before)?;
    Ok(u64::from(written.is_err_and(|why| why.contains("read-only") || why.contains("read_only"))))
}
