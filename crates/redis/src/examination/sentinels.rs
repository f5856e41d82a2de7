use std::collections::HashMap;

use fred::types::Value;
use leasehold_core::{Error, Finding};

use crate::client::command::{Command, SendError, Target};
use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;
use crate::client::endpoint::Endpoint;
use crate::client::link::Link;
use crate::client::sentinels::named_in;
use crate::client::{error, secrets};

/// How many Sentinels watch, as the first one says that answers. `None` where there are none.
pub(super) async fn examine(endpoint: &Endpoint) -> Option<Finding> {
    let config = &endpoint.config;
    let (configs, service) = named_in(config)?;
    let hidden = secrets::of(config);
    let mut why = String::new();
    for config in configs {
        let command = Command {
            name: "SENTINEL",
            arguments: vec!["MASTER".into(), service.into()],
            target: Target::Node(None),
            wait: None,
        };
        let answer = match Link::open(config, endpoint.to_string(), DEFAULT_COMMAND_TIMEOUT).await {
            Ok(sentinel) => {
                let answer = sentinel.send(command, DEFAULT_COMMAND_TIMEOUT).await;
                sentinel.close().await;
                answer
            }
            Err(error) => Err(SendError::Sent(error)),
        };
        match answer.map(Value::convert::<HashMap<String, String>>) {
            Ok(Ok(fields)) => {
                let others = fields.get("num-other-sentinels").and_then(|count| count.parse::<u64>().ok());
                return others.map(|others| finding(others.saturating_add(1), service));
            }
            Ok(Err(error)) | Err(SendError::Sent(error)) => why = error::failed(&error, &hidden).to_string(),
            Err(SendError::NotSent(error)) => why = Error::to_string(&error),
        }
    }
    let text = format!("no Sentinel says how many there are: {why}");
    Some(Finding::unknown("sentinels", text).cure("ACL SETUSER USER_OF_SENTINELS +sentinel|master"))
}

fn finding(count: u64, service: &str) -> Finding {
    if count >= 3 {
        return Finding::well("sentinels", format!("{count} Sentinels watch"));
    }
    let sentinels = if count == 1 { "1 Sentinel watches".to_owned() } else { format!("{count} Sentinels watch") };
    let text = format!("{sentinels}: when one is lost, no majority can replace the primary");
    let service = service.escape_debug();
    Finding::warning("sentinels", text).cure(format!("SENTINEL MONITOR {service} PRIMARY_HOST PORT 2, on a third one"))
}
