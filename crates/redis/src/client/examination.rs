use fred::types::Value;
use futures::future::BoxFuture;
use leasehold_core::{Error, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;
use crate::client::endpoint::Endpoint;
use crate::client::eviction::evicts;
use crate::client::replication::refuse_a_replica;

/// Advice for a server that refuses an operation of a lock.
pub const CURE: &str = "connect to the primary, and give the user the ACL SETUSER rule of the store's README";

/// What makes a server unsafe for locks although it may grant them, one sentence each, with the cure.
///
/// # Errors
/// Those of connecting, also to a read-only replica.
pub fn examine(url: &str) -> BoxFuture<'_, Result<Vec<String>>> {
    Box::pin(examine_server(url))
}

async fn examine_server(url: &str) -> Result<Vec<String>> {
    let connection = Connection::open(&Endpoint::parse(url)?, DEFAULT_COMMAND_TIMEOUT).await?;
    let mut warnings: Vec<String> = refuse_a_replica(&connection).await?.into_iter().collect();
    for node in connection.primaries() {
        let server = node.as_ref().map_or_else(|| "the server".to_owned(), ToString::to_string);
        let memory = vec![Value::from("memory")];
        match connection.send("INFO", memory, Target::Node(node), connection.command_timeout()).await {
            Ok(info) => warnings.extend(evicts(&info.as_str().unwrap_or_default()).map(|policy| {
                format!(
                    "{server} evicts entries when memory is full ({}), also locks that are held: run \
                     CONFIG SET maxmemory-policy noeviction, or give locks a server of their own",
                    connection.quote(policy)
                )
            })),
            Err(error) => warnings.push(format!(
                "whether {server} evicts locks cannot be read ({}): allow it with ACL SETUSER and +info",
                Error::from(error)
            )),
        }
    }
    connection.close().await;
    Ok(warnings)
}
