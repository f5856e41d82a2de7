use std::collections::HashMap;

use leasehold_core::{BoxFuture, Finding, Result};
use mysql_async::Params;

use crate::names::TableName;
use crate::schema::table::TableSchema;
use crate::server::address::Address;
use crate::server::failure::LACKS_RIGHT;
use crate::server::sessions::Sessions;
use crate::statement::reply::Row;
use crate::statement::step::Step;

/// Advice for a server that refuses an operation of a lock.
pub const CURE: &str = "connect to the primary (or SET GLOBAL read_only = 0), and run GRANT SELECT, INSERT, UPDATE, \
                        DELETE ON the database's leasehold tables TO the user";

/// A table of a backend, for [`examine`].
#[derive(Clone, Copy, Debug)]
pub struct ExaminedTable {
    /// What it has to look like.
    pub schema: &'static TableSchema,
    /// Its name, by that of the first table.
    pub name: fn(&TableName) -> Result<TableName>,
    /// The rights that taking a lock needs.
    pub rights: &'static [&'static str],
    /// The column that says when a lease ends.
    pub ends: &'static str,
}

/// The settings that the checks read. A server has those that it knows.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'super_read_only', \
                        'innodb_read_only', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'wsrep_on', \
                        'group_replication_group_name', 'group_replication_single_primary_mode')";

/// What the checks read of the replicas. `MariaDB` alone counts them for everybody.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Rpl_semi_sync_master_status', \
                      'Rpl_semi_sync_source_status')";

/// The checks of the settings, in the order in which they are told.
const CHECKS: [fn(&Settings) -> Option<Finding>; 7] = [version, read_only, log, binary_log, replicas, galera, group];

/// Checks the server of a URL: its settings, the rights of the user, and the tables, the first of which has this name unless
/// the URL names another.
///
/// # Errors
/// [`ErrorKind::InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) for a URL that cannot be used, and the errors
/// of connecting.
pub fn examine<'u>(
    url: &'u str,
    default_table: &'static str,
    tables: &'static [ExaminedTable],
) -> BoxFuture<'u, Result<Vec<Finding>>> {
    Box::pin(async move {
        let address = Address::parse(url)?;
        let sessions = Sessions::new(&address);
        let first = address.own.table.clone().map_or_else(|| TableName::new(default_table), Ok)?;
        let found = examine_server(&sessions, &first, tables).await;
        sessions.close().await;
        found
    })
}

async fn examine_server(sessions: &Sessions, first: &TableName, tables: &[ExaminedTable]) -> Result<Vec<Finding>> {
    let mut rows = ask(sessions, SETTINGS).await?;
    rows.extend(ask(sessions, STATUS).await?);
    let settings = Settings(rows.iter().map(|row| (row.text(0), row.text(1))).collect());
    let mut findings: Vec<Finding> = CHECKS.iter().filter_map(|check| check(&settings)).collect();
    let (user, database) = who_and_where(sessions).await?;
    for table in tables {
        let name = (table.name)(first)?;
        let lacks = missing_rights(sessions, table, &name, (&user, &database)).await?;
        // A server hides a table from a user without rights to it.
        if lacks.is_empty() {
            findings.push(Finding::well("privilege", format!("{user} has the rights to {name} that locks need")));
            findings.extend(contents(sessions, table, &name).await?);
        }
        findings.extend(lacks);
    }
    Ok(findings)
}

/// The settings by their names.
struct Settings(HashMap<String, String>);

impl Settings {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value.to_ascii_uppercase().as_str(), "ON" | "1" | "YES"))
    }
}

fn version(settings: &Settings) -> Option<Finding> {
    let version = settings.get("version")?;
    let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next()?, numbers.next()?);
    let (name, oldest) = if version.contains("MariaDB") { ("MariaDB", (10, 5)) } else { ("MySQL", (5, 7)) };
    let said = version.escape_debug();
    Some(if found < oldest {
        let text = format!("the server is {name} {said}, which is older than the statements that locks use");
        Finding::error("server-version", text).cure(format!("install {name} {}.{} or later", oldest.0, oldest.1))
    } else {
        Finding::well("server-version", format!("the server is {name} {said}"))
    })
}

fn read_only(settings: &Settings) -> Option<Finding> {
    settings.get("read_only")?;
    let is_on = |name: &&&str| settings.is_on(name);
    Some(match ["innodb_read_only", "super_read_only", "read_only"].iter().find(is_on) {
        Some(&"innodb_read_only") => Finding::error("read-only", "InnoDB is read-only").cure("innodb_read_only = 0"),
        Some(name) => {
            let text = "the server is read-only, and only users with extra rights can take locks there, if any; is it a \
                        replica? Then connect to the primary";
            Finding::warning("read-only", text).cure(format!("SET GLOBAL {name} = 0"))
        }
        None => Finding::well("read-only", "the server takes writes"),
    })
}

fn log(settings: &Settings) -> Option<Finding> {
    let value = settings.get("innodb_flush_log_at_trx_commit")?;
    Some(if ["0", "2"].contains(&value) {
        let text = format!(
            "innodb_flush_log_at_trx_commit is {value}, so that a crash forgets locks that are held, and two can hold one"
        );
        Finding::warning("flush-log", text).cure("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    } else {
        Finding::well("flush-log", "each lock is in the log on disk before the server answers")
    })
}

fn binary_log(settings: &Settings) -> Option<Finding> {
    if !settings.is_on("log_bin") {
        return Some(Finding::well("binary-log", "there is no binary log, and no replica can take the server's place"));
    }
    let value = settings.get("sync_binlog")?;
    Some(if value == "1" {
        Finding::well("binary-log", "each lock is in the binary log on disk before the server answers")
    } else {
        let text = format!(
            "sync_binlog is {value}: after a crash the server undoes what its binary log has lost, also locks that are held, \
             and two can hold one"
        );
        Finding::warning("binary-log", text).cure("SET GLOBAL sync_binlog = 1")
    })
}

fn replicas(settings: &Settings) -> Option<Finding> {
    let (master, source) = ("Rpl_semi_sync_master_status", "Rpl_semi_sync_source_status");
    if !settings.is_on("log_bin") {
        return None;
    }
    if settings.is_on(master) || settings.is_on(source) {
        return Some(Finding::well("replicas", "each lock is on a replica before the server answers"));
    }
    let role = if settings.get(source).is_some() { "source" } else { "master" };
    let (health, who): (fn(&'static str, String) -> Finding, _) = match settings.get("Slaves_connected") {
        Some("0") => return Some(Finding::well("replicas", "no replica copies the server")),
        Some(_) => (Finding::warning, "replicas copy the server, and none is waited for"),
        None => (Finding::unknown, "the server waits for no replica, and does not tell whether there is one"),
    };
    let replica = if role == "source" { "replica" } else { "slave" };
    let text = format!(
        "{who} (semi-synchronous replication, with rpl_semi_sync_{replica}_enabled on the replicas): after a fail-over to \
         one of them two can hold one key"
    );
    Some(health("replicas", text).cure(format!("SET GLOBAL rpl_semi_sync_{role}_enabled = 1")))
}

fn galera(settings: &Settings) -> Option<Finding> {
    settings.is_on("wsrep_on").then(|| {
        let text = "this is a node of Galera: exclusion holds where all programs write to one node of it, which a node \
                    cannot tell";
        Finding::unknown("galera", text).cure("name the same node in the URL of each program")
    })
}

fn group(settings: &Settings) -> Option<Finding> {
    let is_member = settings.get("group_replication_group_name").is_some_and(|name| !name.is_empty());
    (is_member && !settings.is_on("group_replication_single_primary_mode")).then(|| {
        let text =
            "the members of this group all take writes: two programs that write to different members can hold one key";
        Finding::warning("group-replication", text).cure("SELECT group_replication_switch_to_single_primary_mode()")
    })
}

/// The user as the server knows it, in quotes, and the database.
async fn who_and_where(sessions: &Sessions) -> Result<(String, String)> {
    let rows = ask(sessions, "SELECT CURRENT_USER(), DATABASE()").await?;
    let text = |index| rows.first().map(|row| row.text(index)).unwrap_or_default();
    let quoted = |part: &str| format!("'{}'", part.replace('\\', "\\\\").replace('\'', "\\'"));
    let account = text(0);
    let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
    let user = format!("{}@{}", quoted(user), quoted(host));
    Ok((sessions.connections.secrets().hide(&user), text(1)))
}

/// The rights to a table that the user lacks. Each is tried by a statement that changes nothing.
async fn missing_rights(
    sessions: &Sessions,
    table: &ExaminedTable,
    name: &TableName,
    (user, database): (&str, &str),
) -> Result<Vec<Finding>> {
    let columns: Vec<_> = table.schema.columns.iter().map(|column| column.name).collect();
    let nothing = vec!["NULL"; columns.len()].join(", ");
    let mut lacks = Vec::new();
    for right in table.rights {
        let statement = match *right {
            "INSERT" => format!("INSERT INTO {name} ({}) SELECT {nothing} FROM DUAL WHERE FALSE", columns.join(", ")),
            "UPDATE" => format!("UPDATE {name} SET label = NULL WHERE FALSE"),
            "DELETE" => format!("DELETE FROM {name} WHERE FALSE"),
            _ => format!("SELECT 1 FROM {name} WHERE FALSE"),
        };
        if ask(sessions, &statement).await.is_err_and(|error| error.to_string().contains(LACKS_RIGHT)) {
            let database = database.replace('`', "``");
            lacks.push(
                Finding::error("privilege", format!("{user} may not {right} on {name}"))
                    .cure(format!("GRANT {right} ON `{database}`.{name} TO {user}")),
            );
        }
    }
    Ok(lacks)
}

/// What is wrong with the table and its rows.
async fn contents(sessions: &Sessions, table: &ExaminedTable, name: &TableName) -> Result<Vec<Finding>> {
    /// How many rows are looked at.
    const LOOKED: u32 = 10_000;
    if let Some(fault) = table.schema.fault(sessions, name).await? {
        return Ok(vec![Finding::error("table", fault.why).cure(fault.cure)]);
    }
    let well = Finding::well("table", format!("{name} has the columns, the key and the engine of this version"));
    let ends = table.ends;
    // A name is a namespace, NUL and a key; no lease is longer than a day.
    let statement = format!(
        "SELECT HEX(name), LOCATE(X'00', name) > 0 FROM (SELECT name, {ends} FROM {name} LIMIT {LOOKED}) AS looked \
         WHERE LOCATE(X'00', name) = 0 OR {ends} > UTC_TIMESTAMP(6) + INTERVAL 25 HOUR LIMIT {}",
        Finding::TOLD + 1
    );
    let foreign = ask(sessions, &statement).await?;
    let tell = |row: &Row| {
        let why = if row.text(1) == "1" { "has a lease of more than a day" } else { "is of no namespace" };
        let text = format!("a row of {name} that Leasehold did not write {why}");
        Finding::warning("foreign-row", text).cure(format!("DELETE FROM {name} WHERE name = X'{}'", row.text(0)))
    };
    let mut findings = vec![well];
    let more = |_| format!("there are more rows in {name} that Leasehold did not write");
    let cure = "delete the others, and ask again";
    findings.extend(Finding::first_of(foreign.iter().map(tell).collect(), more, cure));
    Ok(findings)
}

async fn ask(sessions: &Sessions, statement: &str) -> Result<Vec<Row>> {
    Ok(sessions.run(Step::new("examine", statement).repeatable(), Params::Empty).await?.rows)
}

#[cfg(test)]
mod tests {
    use leasehold_core::Health::{self, Error, Unknown, Warning, Well};

    use super::*;

    type Check = fn(&Settings) -> Option<Finding>;

    /// Names and values.
    type Given = &'static [(&'static str, &'static str)];

    fn found(check: Check, settings: Given) -> Option<Finding> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check(&Settings(settings))
    }

    /// What no server here can be: older ones, members of a group, and a MySQL.
    #[test]
    fn settings_of_servers_that_are_not_at_hand_are_judged() {
        const SINGLE: &str = "group_replication_single_primary_mode";
        const LOG: (&str, &str) = ("log_bin", "ON");
        const MEMBER: (&str, &str) = ("group_replication_group_name", "c0ffee");
        let table: &[(Check, Given, Option<Health>)] = &[
            (version, &[("version", "10.5.0-MariaDB-1")], Some(Well)),
            (version, &[("version", "10.4.34-MariaDB")], Some(Error)),
            (version, &[("version", "5.7.44-log")], Some(Well)),
            (version, &[("version", "8.4.3")], Some(Well)),
            (version, &[("version", "5.6.51")], Some(Error)),
            (version, &[("version", "odd")], None),
            (read_only, &[("read_only", "OFF"), ("super_read_only", "ON")], Some(Warning)),
            (read_only, &[("read_only", "ON"), ("innodb_read_only", "ON")], Some(Error)),
            (read_only, &[("read_only", "OFF")], Some(Well)),
            (replicas, &[LOG], Some(Unknown)),
            (replicas, &[LOG, ("Rpl_semi_sync_source_status", "OFF")], Some(Unknown)),
            (replicas, &[LOG, ("Rpl_semi_sync_source_status", "ON")], Some(Well)),
            (replicas, &[("log_bin", "OFF")], None),
            (galera, &[("wsrep_on", "ON")], Some(Unknown)),
            (galera, &[("wsrep_on", "OFF")], None),
            (group, &[MEMBER, (SINGLE, "OFF")], Some(Warning)),
            (group, &[MEMBER, (SINGLE, "ON")], None),
            (group, &[("group_replication_group_name", ""), (SINGLE, "OFF")], None),
            (group, &[], None),
        ];
        for (check, settings, health) in table {
            assert_eq!(found(*check, settings).map(|finding| finding.health), *health, "{settings:?}");
        }
        let words: [(Given, _, _); 2] =
            [(&[LOG], "slave", "master"), (&[LOG, ("Rpl_semi_sync_source_status", "OFF")], "replica", "source")];
        for (settings, replica, primary) in words {
            let told = found(replicas, settings).unwrap();
            assert!(told.text.contains(&format!("rpl_semi_sync_{replica}_enabled")), "{told:?}");
            assert_eq!(told.cure, Some(format!("SET GLOBAL rpl_semi_sync_{primary}_enabled = 1")));
        }
    }
}
