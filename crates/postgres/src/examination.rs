use leasehold_core::{Finding, Result};
use tokio_postgres::Row;
use tokio_postgres::config::TargetSessionAttrs;

use crate::address::Address;
use crate::notifications::Subscriptions;
use crate::reply::column;
use crate::schema::VERSION;
use crate::sessions::{Sessions, Step};

/// The facts about the server and the user, all as text.
const FACTS: &str = "SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS version_number, \
    pg_is_in_recovery()::text AS recovers, current_setting('default_transaction_read_only') AS read_only, \
    current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes, \
    current_setting('synchronous_commit') AS synchronous_commit, quote_ident(current_user) AS this_user, \
    coalesce(has_schema_privilege(to_regnamespace('{schema}')::oid, 'USAGE')::text, 'absent') AS usage, \
    current_setting('synchronous_standby_names') AS synchronous_standbys, \
    (SELECT count(*) FROM pg_stat_replication)::text AS replicas, quote_ident(current_database()) AS this_database, \
    (SELECT string_agg(name || '=' || source, ',') FROM pg_settings) AS sources";

/// The checks of the settings, in the order in which they are told.
const CHECKS: [fn(&Facts) -> Finding; 7] =
    [version, standby, read_only, fsync, full_page_writes, synchronous_commit, replicas];

/// The rights that the user lacks to what is in the schema, of those that taking a lock needs.
const MISSING_RIGHTS: &str = "SELECT what, needed FROM (VALUES ('locks', 'SELECT'), ('locks', 'INSERT'), ('locks', 'UPDATE'), \
    ('readers', 'SELECT'), ('readers', 'INSERT'), ('readers', 'UPDATE'), ('readers', 'DELETE'), ('holders', 'SELECT')) \
    AS wanted(what, needed) WHERE NOT has_table_privilege(to_regclass('{schema}.' || what)::oid, needed)";

/// What is there of the schema: its three relations and the function that tells the version, and the tables that do not survive a
/// crash, or have no primary key.
const PARTS: &str = "SELECT count(to_regclass('{schema}.' || what)), to_regprocedure('{schema}.version()') IS NOT NULL, \
    coalesce(string_agg(what, ' ') FILTER (WHERE relpersistence = 'u'), ''), \
    coalesce(string_agg(what, ' ') FILTER (WHERE relkind = 'r' AND NOT EXISTS \
        (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)), '') \
    FROM (VALUES ('locks'), ('readers'), ('holders')) AS wanted(what) \
    LEFT JOIN pg_class ON pg_class.oid = to_regclass('{schema}.' || what)";

/// Rows that Leasehold does not write, among the first 10,000 of each table: names are a namespace, NUL and a key, and no lease is
/// longer than a day.
const FOREIGN: &str = "SELECT what, encode(name, 'hex'), position('\\x00'::bytea IN name) > 0 FROM (\
    (SELECT 'locks' AS what, name, expires_at FROM {schema}.locks LIMIT 10000) UNION ALL \
    (SELECT 'readers', name, expires_at FROM {schema}.readers LIMIT 10000)) AS looked \
    WHERE position('\\x00'::bytea IN name) = 0 OR expires_at > now() + interval '25 hours' LIMIT 6";

/// Checks the server of a URL: its settings, the rights of the user, the schema, its rows, and whether notifications arrive.
pub(crate) async fn examine(url: &str) -> Result<Vec<Finding>> {
    let mut address = Address::parse(url)?;
    // A standby tells, too, what it is.
    address.config.target_session_attrs(TargetSessionAttrs::Any);
    let sessions = Sessions::new(address);
    let found = examine_server(&sessions).await;
    sessions.close();
    found
}

async fn examine_server(sessions: &Sessions) -> Result<Vec<Finding>> {
    let Some(facts) = ask(sessions, FACTS).await?.pop().map(Facts) else { return Ok(Vec::new()) };
    let mut findings: Vec<Finding> = CHECKS.iter().map(|check| check(&facts)).collect();
    let schema = sessions.address().schema.statement("{schema}");
    let lacks = |right: &str, what: &str| {
        let user = sessions.address().secrets.hide(facts.get("this_user"));
        Finding::error("privilege", format!("{user} may not {right} on {what}"))
            .cure(format!("GRANT {right} ON {what} TO {user}"))
    };
    if facts.get("usage") == "absent" {
        findings.push(Finding::error("schema", format!("there is no schema {schema}")).cure("leasehold migrate"));
        return Ok(findings);
    }
    if facts.get("usage") != "true" {
        findings.push(lacks("USAGE", &format!("SCHEMA {schema}")));
        return Ok(findings);
    }
    let parts = parts(sessions, &schema).await?;
    let is_whole = parts.is_empty();
    findings.extend(parts);
    if !is_whole {
        return Ok(findings);
    }
    findings.push(Finding::well("schema", format!("the schema {schema} is of this version")));
    let missing = ask(sessions, MISSING_RIGHTS).await?;
    for row in &missing {
        let [what, right]: [&str; 2] = [column(row, 0, "examine")?, column(row, 1, "examine")?];
        findings.push(lacks(right, &format!("{schema}.{what}")));
    }
    if missing.is_empty() {
        findings.push(Finding::well("privilege", "the user has the rights that locks need"));
        findings.extend(foreign_rows(sessions, &schema).await?);
    }
    findings.push(notifications(sessions).await);
    Ok(findings)
}

/// What is said of the server.
struct Facts(Row);

impl Facts {
    /// A fact by its name in [`FACTS`]; empty if the server does not tell it.
    fn get(&self, name: &str) -> &str {
        self.0.try_get(name).unwrap_or_default()
    }

    /// What gives a setting this value. Each place wins over those below it.
    fn set(&self, name: &str, value: &str) -> String {
        let (user, database) = (self.get("this_user"), self.get("this_database"));
        let source = self.get("sources").split(',').find_map(|setting| setting.strip_prefix(name)?.strip_prefix('='));
        let reset = match source.unwrap_or_default() {
            "client" => return format!("take {name} out of the options in the URL"),
            "command line" => return format!("take {name} off the command line of the server"),
            "database user" => format!("ALTER ROLE {user} IN DATABASE {database} RESET {name}"),
            "user" => format!("ALTER ROLE {user} RESET {name}"),
            "database" => format!("ALTER DATABASE {database} RESET {name}"),
            _ => return format!("ALTER SYSTEM SET {name} = {value}; SELECT pg_reload_conf()"),
        };
        // Where transactions are read-only, so is the one that ends that.
        if name == "default_transaction_read_only" { format!("BEGIN READ WRITE; {reset}; COMMIT") } else { reset }
    }
}

fn version(facts: &Facts) -> Finding {
    const OLDEST: u32 = 13;
    let version = facts.get("version").escape_debug();
    if facts.get("version_number").parse::<u32>().is_ok_and(|number| number < OLDEST * 10_000) {
        let text = format!("the server is PostgreSQL {version}, which is older than what locks use");
        Finding::error("server-version", text).cure(format!("install PostgreSQL {OLDEST} or later"))
    } else {
        Finding::well("server-version", format!("the server is PostgreSQL {version}"))
    }
}

fn standby(facts: &Facts) -> Finding {
    if facts.get("recovers") == "true" {
        Finding::error("standby", "the server is a standby, on which nothing can be locked")
            .cure("name its primary in the URL, or all servers: postgres://PRIMARY,STANDBY/DATABASE")
    } else {
        Finding::well("standby", "the server is no standby")
    }
}

fn read_only(facts: &Facts) -> Finding {
    if facts.get("read_only") == "on" && facts.get("recovers") != "true" {
        Finding::error("read-only", "transactions are read-only by default")
            .cure(facts.set("default_transaction_read_only", "off"))
    } else {
        Finding::well("read-only", "transactions may write by default")
    }
}

fn fsync(facts: &Facts) -> Finding {
    if facts.get("fsync") == "off" {
        let text = "fsync is off, so that a crash of the machine forgets locks that are held, and two can hold one";
        Finding::warning("fsync", text).cure(facts.set("fsync", "on"))
    } else {
        Finding::well("fsync", "each lock is on disk before the server answers")
    }
}

fn full_page_writes(facts: &Facts) -> Finding {
    if facts.get("full_page_writes") == "off" {
        let text = "full_page_writes is off, so that a crash of the machine may leave pages half written, and locks in them lost";
        Finding::warning("full-page-writes", text).cure(facts.set("full_page_writes", "on"))
    } else {
        Finding::well("full-page-writes", "a page that was half written is restored after a crash")
    }
}

fn synchronous_commit(facts: &Facts) -> Finding {
    if facts.get("synchronous_commit") == "off" {
        let text = "synchronous_commit is off: grants are written to the disk all the same, and a crash may bring released \
                    locks back until their leases end";
        Finding::warning("synchronous-commit", text).cure(facts.set("synchronous_commit", "on"))
    } else {
        Finding::well("synchronous-commit", "a release is on disk before the server answers")
    }
}

fn replicas(facts: &Facts) -> Finding {
    let fault = |why: &str, cure: String| {
        let text = format!("{why}: after a fail-over to one of them two can hold one key");
        Finding::warning("replicas", text).cure(cure)
    };
    if facts.get("replicas") == "0" {
        Finding::well("replicas", "no standby copies the server")
    } else if facts.get("synchronous_standbys").is_empty() {
        let why = "standbys copy the server, and none is waited for";
        fault(why, facts.set("synchronous_standby_names", "'*'"))
    } else if ["off", "local"].contains(&facts.get("synchronous_commit")) {
        let why =
            format!("synchronous_commit is {}, so that no standby is waited for", facts.get("synchronous_commit"));
        fault(&why, facts.set("synchronous_commit", "on"))
    } else {
        Finding::well("replicas", "each lock is on a standby before the server answers")
    }
}

/// What is missing or wrong in the schema.
async fn parts(sessions: &Sessions, schema: &str) -> Result<Vec<Finding>> {
    let migrate = |text: String| vec![Finding::error("schema", text).cure("leasehold migrate")];
    let rows = ask(sessions, PARTS).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let (count, tells): (i64, bool) = (column(row, 0, "examine")?, column(row, 1, "examine")?);
    let [unlogged, without_key]: [&str; 2] = [column(row, 2, "examine")?, column(row, 3, "examine")?];
    if count < 3 || !tells {
        return Ok(migrate(format!("the schema {schema} lacks tables or functions")));
    }
    let version = ask(sessions, "SELECT {schema}.version()").await?;
    let version = version.first().map_or(Ok(0), |row| column::<i32>(row, 0, "examine"))?;
    if version != VERSION {
        let text = format!("the schema {schema} is of version {version}, and this program knows version {VERSION}");
        return Ok(vec![Finding::error("schema", text).cure("install the leasehold of that version")]);
    }
    let mut findings = Vec::new();
    for table in unlogged.split_whitespace() {
        let text = format!("a crash of the server empties {schema}.{table}, and locks that are held: it is unlogged");
        findings.push(Finding::warning("table", text).cure(format!("ALTER TABLE {schema}.{table} SET LOGGED")));
    }
    for table in without_key.split_whitespace() {
        let key = if table == "readers" { "name, owner" } else { "name" };
        let text = format!("{schema}.{table} has no primary key, so that two can hold one lock");
        findings
            .push(Finding::error("table", text).cure(format!("ALTER TABLE {schema}.{table} ADD PRIMARY KEY ({key})")));
    }
    Ok(findings)
}

async fn foreign_rows(sessions: &Sessions, schema: &str) -> Result<Vec<Finding>> {
    let rows = ask(sessions, FOREIGN).await?;
    let mut findings = Vec::new();
    for row in &rows {
        let [table, name]: [&str; 2] = [column(row, 0, "examine")?, column(row, 1, "examine")?];
        let is_named: bool = column(row, 2, "examine")?;
        let why = if is_named { "has a lease of more than a day" } else { "is of no namespace" };
        let text = format!("a row of {schema}.{table} that Leasehold did not write {why}");
        let cure = format!("DELETE FROM {schema}.{table} WHERE name = '\\x{name}'");
        findings.push(Finding::warning("foreign-row", text).cure(cure));
    }
    let more = |_| "there are more rows that Leasehold did not write".to_owned();
    Ok(Finding::first_of(findings, more, "delete the others, and ask again"))
}

/// Whether what is notified through the pool arrives where a locker listens.
async fn notifications(sessions: &Sessions) -> Finding {
    let Some(subscriptions) = Subscriptions::new(sessions) else {
        return Finding::well("notifications", "nobody listens, as the URL says: waiters poll");
    };
    match subscriptions.open().await {
        Ok(_) => Finding::well("notifications", "a waiter is told of a release"),
        Err(error) => {
            let text = format!("no waiter is told of a release, behind a pooler in transaction mode for one: {error}");
            Finding::warning("notifications", text)
                .cure("add listen=HOST:PORT of the server itself to the URL, or listen=false")
        }
    }
}

async fn ask(sessions: &Sessions, statement: &'static str) -> Result<Vec<Row>> {
    sessions.run(Step::new("examine", statement), &[]).await
}
