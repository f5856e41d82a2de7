//! How much a store has: what it keeps, and what its servers keep for their clients.

use std::fs;
use std::path::Path;

use leasehold_testkit::launch::etcd;

use super::node::{Node, Program};
use super::session::Session;
use super::store::Store;

/// Of all servers together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    /// Keys, rows, files and folders.
    pub(crate) entries: u64,
    /// What the data take of memory, or of files that belong to tables.
    pub(crate) bytes: u64,
    /// Connections, channels, prepared statements and scripts.
    pub(crate) sessions: u64,
}

/// Everything in this store, counted by its servers.
pub(crate) fn size(store: &Store) -> Result<Size, String> {
    if store.nodes.is_empty() {
        return Ok(Size { entries: files(Path::new(store.direct.trim_start_matches("file:"))), ..Size::default() });
    }
    let mut all = Size::default();
    for node in &store.nodes {
        let one = match node.program {
            Program::Redis => of_redis(node),
            Program::MariaDb => of_mariadb(&mut Session::of_an_operator(node)?)?,
            Program::Postgres => of_postgres(&mut Session::of_an_operator(node)?)?,
            Program::Etcd => of_etcd(node)?,
            Program::Agent => Size::default(),
        };
        all.entries += one.entries;
        all.bytes += one.bytes;
        all.sessions += one.sessions;
    }
    Ok(all)
}

fn files(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { 1 + files(&entry.path()) } else { 1 }).sum()
}

fn of_redis(node: &Node) -> Size {
    let kept = ["connected_clients", "pubsub_channels", "pubsub_patterns", "number_of_cached_scripts"];
    let sections = ["clients", "stats", "stats", "memory"];
    Size {
        entries: u64::try_from(node.ask(&["DBSIZE"]).number()).unwrap_or(0),
        bytes: node.info("memory", "used_memory"),
        sessions: kept.into_iter().zip(sections).map(|(name, section)| node.info(section, name)).sum(),
    }
}

fn of_mariadb(session: &mut Session) -> Result<Size, String> {
    let mut number = |statement: &str| session.number(statement).map(i64::unsigned_abs);
    let files =
        "SELECT CAST(file_size AS CHAR) FROM information_schema.innodb_sys_tablespaces WHERE name LIKE 'leasehold/%'";
    let kept = "SELECT variable_value FROM information_schema.global_status WHERE variable_name IN ('THREADS_CONNECTED', \
                'PREPARED_STMT_COUNT')";
    let (bytes, sessions) = (number(files)?, number(kept)?);
    let tables = session.ask("SHOW TABLES FROM leasehold LIKE 'leasehold%'")?;
    let rows = |table| format!("SELECT CAST(COUNT(*) AS CHAR) FROM leasehold.{table}");
    let rows: Result<Vec<i64>, String> = tables.into_iter().map(|table| session.number(&rows(table))).collect();
    Ok(Size { entries: rows?.iter().sum::<i64>().unsigned_abs(), bytes, sessions })
}

fn of_postgres(session: &mut Session) -> Result<Size, String> {
    let mut number = |statement: &str| session.number(statement).map(i64::unsigned_abs);
    Ok(Size {
        entries: number("SELECT (SELECT count(*) FROM leasehold.locks) + (SELECT count(*) FROM leasehold.readers)")?,
        bytes: number(
            "SELECT pg_total_relation_size('leasehold.locks') + pg_total_relation_size('leasehold.readers')",
        )?,
        sessions: number("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")?,
    })
}

fn of_etcd(node: &Node) -> Result<Size, String> {
    let metrics = etcd::get(node.port, "metrics").map_err(|error| error.to_string())?;
    let number = |name: &str| -> Result<u64, String> {
        let told = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        // It is told as a float.
        let whole = |told: &str| told.parse::<f64>().ok().and_then(|told| format!("{told:.0}").parse().ok());
        told.and_then(whole).ok_or_else(|| format!("etcd tells no {name}"))
    };
    let leases = etcd::control(&[node.port], &["lease", "list"])?;
    let leases = leases.lines().filter(|line| !line.starts_with("found ")).count() as u64;
    Ok(Size {
        entries: number("etcd_debugging_mvcc_keys_total")? + leases,
        bytes: number("etcd_mvcc_db_total_size_in_use_in_bytes")?,
        sessions: number("etcd_debugging_mvcc_watcher_total")? + number("etcd_debugging_mvcc_watch_stream_total")?,
    })
}
