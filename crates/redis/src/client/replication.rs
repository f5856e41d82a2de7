use fred::types::Value;
use fred::types::config::Server;
use leasehold_core::{Error, ErrorKind, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;

/// Warns, through `tracing`, of what about replication makes a fail-over lose locks: of each primary that has replicas, or
/// Sentinels to replace it, and that writes on when it is cut off from all of them. Of none that does not tell.
pub(crate) async fn warn_of_fail_over(connection: &Connection) {
    for node in connection.primaries() {
        let server = node.as_ref().map(|node| format!("{}: ", node.to_string().escape_debug())).unwrap_or_default();
        if ask(connection, node).await.is_some_and(|state| state.writes_alone(connection.has_sentinels())) {
            tracing::warn!(
                "{server}this Redis can be replaced by a replica and goes on writing when it is cut off from all of \
                 them, so that a fail-over can put two holders side by side: set min-replicas-to-write 1 and a \
                 min-replicas-max-lag shorter than the time after which it counts as down, and let replicas confirm \
                 grants and renewals (confirm_replicas)"
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
    let Some(state) = ask(connection, None).await else { return Ok(None) };
    let Some(primary) = state.primary() else { return Ok(None) };
    let (server, primary) = (connection.shown(), connection.quote(&primary));
    if state.takes_writes() {
        return Ok(Some(format!(
            "{server} is a replica that takes writes: locks on it are on no other server, and are lost when it next copies \
             its primary; connect to the primary, {primary}"
        )));
    }
    Err(Error::new(ErrorKind::Unavailable, "connect").detail(format!(
        "{server} is a read-only replica: connect to the primary, {primary}, or to Sentinels, which know it \
         (redis-sentinel://); if it is being promoted just now, try again"
    )))
}

/// What a server says of its replication. `None`: it does not answer, or refuses to.
async fn ask(connection: &Connection, node: Option<Server>) -> Option<State> {
    let about = vec![Value::from("replication")];
    match connection.send("INFO", about, Target::Node(node), connection.command_timeout()).await {
        Ok(info) => Some(State::of(&info.as_str().unwrap_or_default())),
        Err(failed) => {
            let (server, error) = (connection.shown(), Error::from(failed));
            tracing::debug!(server, ?error, "the state of replication cannot be read");
            None
        }
    }
}

/// The value of a line `name:value` of what `INFO` answers.
pub(crate) fn field<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// What a server says of its replication.
pub(crate) struct State(String);

impl State {
    /// From the answer to `INFO`.
    pub(crate) fn of(info: &str) -> Self {
        Self(info.to_owned())
    }

    fn field(&self, name: &str) -> Option<&str> {
        field(&self.0, name)
    }

    /// Of whom it is a replica.
    pub(crate) fn primary(&self) -> Option<String> {
        let part = |name| self.field(name).unwrap_or("?");
        (self.field("role") == Some("slave")).then(|| format!("{}:{}", part("master_host"), part("master_port")))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_that_can_be_replaced_and_wants_no_replicas_is_worth_a_warning() {
        let primary =
            |slaves, more| State(format!("# Replication\r\nrole:master\r\nconnected_slaves:{slaves}\r\n{more}"));
        assert!(primary(1, "").writes_alone(false));
        assert!(primary(0, "").writes_alone(true));
        assert!(!primary(0, "").writes_alone(false));
        assert!(!primary(1, "min_slaves_good_slaves:1\r\n").writes_alone(true));
        assert!(!State("# Replication\r\nrole:slave\r\nconnected_slaves:1\r\n".into()).writes_alone(false));
        assert!(!State(String::new()).writes_alone(true));
        assert_eq!((primary(1, "").primary(), State(String::new()).primary()), (None, None));
    }
}
