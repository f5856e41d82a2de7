use fred::types::Value;
use fred::types::config::Server;
use leasehold_core::{Error, ErrorKind, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;

/// Warns, through `tracing`, of what about replication makes a fail-over lose locks: of each primary that has replicas, or
/// Sentinels to replace it, and that writes on when it is cut off from all of them. Of none that does not tell.
pub(crate) async fn warn_of_fail_over(connection: &Connection) {
    for node in connection.primaries() {
        let server = node.as_ref().map(ToString::to_string);
        if replication(connection, node).await.is_some_and(|info| info.writes_alone(connection.has_sentinels())) {
            tracing::warn!(
                server,
                "a fail-over can put two holders side by side, for this Redis goes on writing when it is cut off from all \
                 replicas: set min-replicas-to-write 1 and confirm_replicas; leasehold doctor says more"
            );
        }
    }
}

/// Refuses a server that was named itself and is a replica: nothing can be locked on it, and nobody will say who is the
/// primary. Has a warning for one that takes writes all the same.
///
/// # Errors
/// [`Unavailable`](ErrorKind::Unavailable), because it may be about to be promoted.
pub(crate) async fn refuse_a_replica(connection: &Connection) -> Result<Option<String>> {
    if connection.is_clustered() || connection.has_sentinels() {
        return Ok(None);
    }
    let Some(info) = replication(connection, None).await else { return Ok(None) };
    let Some(primary) = info.primary() else { return Ok(None) };
    let wrong = info.why_not_a_replica(connection.shown(), &connection.quote(&primary));
    if info.takes_writes() {
        return Ok(Some(wrong));
    }
    Err(Error::new(ErrorKind::Unavailable, "connect").detail(format!(
        "{wrong}, or to Sentinels, which know it (redis-sentinel://); if it is being promoted just now, try again"
    )))
}

/// What a server says of its replication. `None`: it does not answer, or refuses to.
async fn replication(connection: &Connection, node: Option<Server>) -> Option<Info> {
    let untold = |error: &Error| {
        tracing::debug!(server = connection.shown(), ?error, "the state of replication cannot be read");
    };
    Info::of(connection, node, &["replication"]).await.inspect_err(untold).ok()
}

/// See [`Store::warn_of_eviction`](crate::Store::warn_of_eviction).
pub(crate) async fn warn_of_eviction(connection: &Connection) {
    for node in connection.primaries() {
        let server = node.as_ref().map(ToString::to_string);
        match Info::of(connection, node, &["memory"]).await {
            Ok(info) => {
                if let Some(policy) = info.evicts() {
                    tracing::warn!(
                        server,
                        policy = connection.quote(policy),
                        "this Redis evicts entries when memory is full, also locks that are held: \
                         set maxmemory-policy noeviction, or give locks a server of their own"
                    );
                }
            }
            Err(error) => tracing::warn!(server, %error, "whether the server evicts entries cannot be read"),
        }
    }
}

/// What a server says of itself: lines `name:value`.
pub(crate) struct Info(String);

impl Info {
    /// Asks a server for these sections, without any for those that it tells by itself.
    pub(crate) async fn of(connection: &Connection, node: Option<Server>, sections: &[&str]) -> Result<Self> {
        connection.ask("INFO", sections, Target::Node(node)).await.map(|info| Self::read(&info))
    }

    pub(crate) fn read(answer: &Value) -> Self {
        Self(answer.as_str().unwrap_or_default().into_owned())
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// Of whom it is a replica.
    pub(crate) fn primary(&self) -> Option<String> {
        let part = |name| self.field(name).unwrap_or("?");
        (self.field("role") == Some("slave")).then(|| format!("{}:{}", part("master_host"), part("master_port")))
    }

    /// What is wrong with locks on it, if it has this name and is a replica of this primary.
    pub(crate) fn why_not_a_replica(&self, name: &str, primary: &str) -> String {
        if self.takes_writes() {
            format!(
                "{name} is a replica that takes writes: locks on it are on no other server, and are lost when it next copies its \
                 primary; connect to the primary, {primary}"
            )
        } else {
            format!("{name} is a read-only replica: connect to the primary, {primary}")
        }
    }

    pub(crate) fn takes_writes(&self) -> bool {
        self.field("slave_read_only") == Some("0")
    }

    /// Whether a replica can take its place while it goes on writing.
    pub(crate) fn writes_alone(&self, has_sentinels: bool) -> bool {
        let has_replicas = self.field("connected_slaves").is_some_and(|count| count != "0");
        // Told only where both settings are set.
        let wants_them = self.field("min_slaves_good_slaves").is_some();
        self.field("role") == Some("master") && (has_replicas || has_sentinels) && !wants_them
    }

    /// The policy, if there is a limit to the memory and a policy that deletes.
    pub(crate) fn evicts(&self) -> Option<&str> {
        let policy = self.field("maxmemory_policy")?;
        let limited = self.field("maxmemory").is_some_and(|limit| limit != "0");
        (limited && policy != "noeviction").then_some(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_that_can_be_replaced_and_wants_no_replicas_is_worth_a_warning() {
        let primary =
            |slaves, more| Info(format!("# Replication\r\nrole:master\r\nconnected_slaves:{slaves}\r\n{more}"));
        assert!(primary(1, "").writes_alone(false));
        assert!(primary(0, "").writes_alone(true));
        assert!(!primary(0, "").writes_alone(false));
        assert!(!primary(1, "min_slaves_good_slaves:1\r\n").writes_alone(true));
        assert!(!Info("# Replication\r\nrole:slave\r\nconnected_slaves:1\r\n".into()).writes_alone(false));
        assert!(!Info(String::new()).writes_alone(true));
        assert_eq!((primary(1, "").primary(), Info(String::new()).primary()), (None, None));
    }
}
