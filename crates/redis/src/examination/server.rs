use fred::types::Value;
use leasehold_core::Finding;

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::endpoint::Endpoint;
use crate::client::info::Info;
use crate::client::value::text;
use crate::examination::needs::user_of;

/// The oldest server that has what the scripts use.
const OLDEST: u32 = 6;

/// The checks of one server, in the order in which they are told.
const CHECKS: [fn(&Server<'_>) -> Option<Finding>; 7] =
    [version, role, replicas, memory, eviction, persistence, cluster_state];

/// What is known of one server that holds data.
struct Server<'c> {
    connection: &'c Connection,
    name: String,
    user: &'c str,
    info: Info,
    /// `appendfsync`, unless the server keeps that to itself.
    fsync: Option<String>,
    /// What `CLUSTER INFO` says, of a node of a Cluster.
    cluster: Option<Info>,
}

/// Checks each server that holds data.
pub(super) async fn examine(connection: &Connection, endpoint: &Endpoint) -> Vec<Finding> {
    let mut findings = Vec::new();
    for node in connection.primaries() {
        let name = node.as_ref().map_or_else(|| connection.shown().to_owned(), ToString::to_string);
        let name = name.escape_debug().to_string();
        let user = user_of(endpoint);
        let info = match Info::of(connection, node.clone(), &[]).await {
            Ok(info) => info,
            Err(error) => {
                let text = format!("{name} does not tell its settings: {error}");
                // No right brings back what `rename-command` took away.
                let is_gone = text.contains("unknown command");
                let finding = Finding::unknown("settings", text);
                findings.push(if is_gone { finding } else { finding.cure(format!("ACL SETUSER {user} +info")) });
                continue;
            }
        };
        let fsync = connection.ask("CONFIG", &["GET", "appendfsync"], Target::Node(node.clone())).await;
        let fsync = fsync.ok().and_then(|answer| setting(&answer));
        let cluster = if connection.is_clustered() {
            connection.ask("CLUSTER", &["INFO"], Target::Node(node)).await.ok().map(|info| Info::read(&info))
        } else {
            None
        };
        let server = Server { connection, name, user, info, fsync, cluster };
        findings.extend(CHECKS.iter().filter_map(|check| check(&server)));
    }
    findings
}

fn version(server: &Server<'_>) -> Option<Finding> {
    let version = server.info.field("redis_version")?;
    let major: u32 = version.split('.').next()?.parse().ok()?;
    let said = server.connection.quote(version);
    let name = &server.name;
    Some(if major < OLDEST {
        let text = format!("{name} is of version {said}, which is older than the commands that locks use");
        Finding::error("server-version", text).cure(format!("install Redis {OLDEST} or later, or Valkey"))
    } else {
        Finding::well("server-version", format!("{name} is of version {said}"))
    })
}

fn role(server: &Server<'_>) -> Option<Finding> {
    let info = &server.info;
    let primary = server.connection.quote(&info.primary()?);
    let text = info.why_not_a_replica(&server.name, &primary);
    let found = if info.takes_writes() { Finding::warning("replica", text) } else { Finding::error("replica", text) };
    Some(found.cure(format!("--backend redis://{primary}")))
}

fn replicas(server: &Server<'_>) -> Option<Finding> {
    let name = &server.name;
    if server.info.primary().is_some() {
        return None;
    }
    Some(if server.info.writes_alone(server.connection.has_sentinels()) {
        let text = format!(
            "{name} can be replaced by a replica and goes on writing when it is cut off from all of them, so that a fail-over \
             can put two holders side by side; min-replicas-max-lag has to be shorter than the time after which it counts \
             as down, and confirm_replicas has replicas confirm each grant"
        );
        Finding::warning("replicas", text).cure("CONFIG SET min-replicas-to-write 1")
    } else {
        Finding::well("replicas", format!("{name} takes no writes that no replica could get"))
    })
}

fn memory(server: &Server<'_>) -> Option<Finding> {
    let bytes = |field| server.info.field(field)?.parse::<u64>().ok();
    let (used, most, name) = (bytes("used_memory")?, bytes("maxmemory")?, &server.name);
    let is_full = most > 0 && used >= most && server.info.evicts().is_none();
    is_full.then(|| {
        let text = format!("{name} has used up its memory (maxmemory {most}) and refuses to write");
        Finding::error("memory", text).cure(format!("CONFIG SET maxmemory {}", used.saturating_mul(2)))
    })
}

fn eviction(server: &Server<'_>) -> Option<Finding> {
    server.info.field("maxmemory_policy")?;
    let name = &server.name;
    Some(match server.info.evicts() {
        Some(policy) => {
            let policy = server.connection.quote(policy);
            let text = format!("{name} evicts entries when memory is full ({policy}), also locks that are held");
            Finding::warning("eviction-policy", text).cure("CONFIG SET maxmemory-policy noeviction")
        }
        None => Finding::well("eviction-policy", format!("{name} evicts no locks when memory is full")),
    })
}

fn persistence(server: &Server<'_>) -> Option<Finding> {
    let name = &server.name;
    let forgets = "a crash forgets locks that are held, and two can hold one";
    Some(match (server.info.field("aof_enabled")?, server.fsync.as_deref()) {
        ("0", _) => Finding::warning("persistence", format!("{name} has no append-only file: {forgets}"))
            .cure("CONFIG SET appendonly yes"),
        (_, Some("always")) => Finding::well("persistence", format!("{name} has each lock on disk before it answers")),
        (_, Some(fsync)) => {
            let fsync = server.connection.quote(fsync);
            let text = format!("{name} writes to the disk after it has answered (appendfsync {fsync}): {forgets}");
            Finding::warning("persistence", text).cure("CONFIG SET appendfsync always")
        }
        (_, None) => {
            let text = format!("{name} does not say whether a lock is on disk before it answers (appendfsync)");
            Finding::unknown("persistence", text).cure(format!("ACL SETUSER {} +config|get", server.user))
        }
    })
}

fn cluster_state(server: &Server<'_>) -> Option<Finding> {
    let (cluster, name) = (server.cluster.as_ref()?, &server.name);
    let size: u32 = cluster.field("cluster_size")?.parse().ok()?;
    let slots = cluster.field("cluster_slots_ok")?;
    Some(match cluster.field("cluster_state")? {
        "ok" if size < 3 => {
            let text =
                format!("{name} is in a Cluster with {size} primaries, in which no majority can replace a lost one");
            Finding::warning("cluster-state", text).cure("redis-cli --cluster add-node NEW_HOST:PORT HOST:PORT")
        }
        "ok" => Finding::well("cluster-state", format!("{name} is in a Cluster that serves all slots")),
        _ => {
            let slots = server.connection.quote(slots);
            let text = format!("{name} is in a Cluster that serves {slots} of 16384 slots");
            Finding::error("cluster-state", text).cure("redis-cli --cluster fix HOST:PORT")
        }
    })
}

/// The value of the only setting in an answer to `CONFIG GET`.
fn setting(answer: &Value) -> Option<String> {
    match answer {
        Value::Array(parts) => parts.get(1).map(|value| text(value).to_owned()),
        Value::Map(map) => map.clone().inner().values().next().map(|value| text(value).to_owned()),
        _ => None,
    }
    .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use leasehold_core::Health;
    use leasehold_testkit::redis::FakeRedis;

    use super::*;
    use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;

    /// What no server here can be.
    #[tokio::test]
    async fn a_server_before_6_is_an_error_and_what_a_server_keeps_to_itself_is_unknown() {
        for (info, id, health) in [
            ("redis_version:5.0.14\r\n", "server-version", Health::Error),
            ("redis_version:6.0.0\r\n", "server-version", Health::Well),
            ("aof_enabled:1\r\n", "persistence", Health::Unknown),
            ("aof_enabled:0\r\n", "persistence", Health::Warning),
            ("maxmemory:1\r\nmaxmemory_policy:volatile-lru\r\n", "eviction-policy", Health::Warning),
        ] {
            let answer = format!("${}\r\n{info}\r\n", info.len());
            let fake = FakeRedis::start(move |words| (words == ["INFO"]).then(|| answer.clone())).await;
            let endpoint = Endpoint::parse(&fake.url()).expect("a good URL");
            let connection = Connection::open(&endpoint, DEFAULT_COMMAND_TIMEOUT).await.expect("a connection");
            let found = examine(&connection, &endpoint).await;
            let found = found.iter().find(|finding| finding.id == id).map(|finding| finding.health);
            assert_eq!(found, Some(health), "{info}");
        }
    }
}
