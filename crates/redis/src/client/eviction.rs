use fred::types::Value;
use leasehold_core::Error;

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::replication::field;

/// Warns, through `tracing`, of a server that deletes entries when it runs out of memory: among them locks that are
/// held, and their counters. Also of a server that refuses to say.
pub(crate) async fn warn_of_eviction(connection: &Connection) {
    for node in connection.primaries() {
        let server = node.as_ref().map(ToString::to_string);
        let memory = vec![Value::from("memory")];
        match connection.send("INFO", memory, Target::Node(node), connection.command_timeout()).await {
            Ok(info) => {
                if let Some(policy) = evicts(&info.as_str().unwrap_or_default()) {
                    tracing::warn!(
                        server,
                        policy = connection.quote(policy),
                        "this Redis evicts entries when memory is full, also locks that are held: \
                         set maxmemory-policy noeviction, or give locks a server of their own"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(server, error = %Error::from(error), "whether the server evicts entries cannot be read");
            }
        }
    }
}

/// The policy, if there is a limit to the memory and a policy that deletes.
pub(crate) fn evicts(info: &str) -> Option<&str> {
    let policy = field(info, "maxmemory_policy")?;
    let limited = field(info, "maxmemory").is_some_and(|limit| limit != "0");
    (limited && policy != "noeviction").then_some(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_limit_with_a_deleting_policy_is_worth_a_warning() {
        let info = |limit, policy| {
            format!("# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_human:0B\r\nmaxmemory_policy:{policy}\r\n")
        };
        assert_eq!(evicts(&info(0, "allkeys-lru")), None);
        assert_eq!(evicts(&info(1024, "noeviction")), None);
        assert_eq!(evicts(&info(1024, "volatile-ttl")), Some("volatile-ttl"));
        assert_eq!(evicts("ERR"), None);
    }
}
