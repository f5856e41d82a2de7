use fred::types::Value;
use leasehold_core::Error;

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::replication::field;

/// See [`Store::warn_of_eviction`](crate::Store::warn_of_eviction).
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
