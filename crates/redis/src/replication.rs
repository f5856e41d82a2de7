use fred::types::Value;
use leasehold_core::Error;

use crate::Connection;
use crate::connection::Target;

/// What about replication makes a fail-over lose locks, in a sentence for each primary that it is true of; none where all
/// is well, and where a server does not tell.
///
/// A primary that has replicas, or Sentinels to replace it, and that writes on when it is cut off from all of them.
pub async fn fail_over_risks(connection: &Connection) -> Vec<String> {
    let mut risks = Vec::new();
    for node in connection.primaries() {
        let server = node.as_ref().map(|node| format!("{}: ", node.to_string().escape_debug())).unwrap_or_default();
        let about = vec![Value::from("replication")];
        match connection.send("INFO", about, Target::Node(node), connection.command_timeout()).await {
            Ok(info) if writes_alone(&info.as_str().unwrap_or_default(), connection.has_sentinels()) => {
                risks.push(format!(
                    "{server}this Redis can be replaced by a replica and goes on writing when it is cut off from all of \
                     them, so that a fail-over can put two holders side by side: set min-replicas-to-write 1 and a \
                     min-replicas-max-lag shorter than the time after which it counts as down, and let replicas confirm \
                     grants and renewals (confirm_replicas)"
                ));
            }
            Ok(_) => {}
            Err(failed) => {
                let error = Error::from(failed);
                tracing::debug!(server, ?error, "the state of replication cannot be read");
            }
        }
    }
    risks
}

/// Warns of them, through `tracing`.
pub async fn warn_of_fail_over(connection: &Connection) {
    for risk in fail_over_risks(connection).await {
        tracing::warn!("{risk}");
    }
}

fn writes_alone(info: &str, has_sentinels: bool) -> bool {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let has_replicas = field("connected_slaves").is_some_and(|count| count.trim() != "0");
    let is_primary = field("role").is_some_and(|role| role.trim() == "master");
    // Told only where both settings are set.
    let wants_them = field("min_slaves_good_slaves").is_some();
    is_primary && (has_replicas || has_sentinels) && !wants_them
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_that_can_be_replaced_and_wants_no_replicas_is_worth_a_warning() {
        let info = |slaves, more| format!("# Replication\r\nrole:master\r\nconnected_slaves:{slaves}\r\n{more}");
        assert!(writes_alone(&info(1, ""), false));
        assert!(writes_alone(&info(0, ""), true));
        assert!(!writes_alone(&info(0, ""), false));
        assert!(!writes_alone(&info(1, "min_slaves_good_slaves:1\r\n"), true));
        assert!(!writes_alone("# Replication\r\nrole:slave\r\nconnected_slaves:1\r\n", false));
        assert!(!writes_alone("", true));
    }
}
