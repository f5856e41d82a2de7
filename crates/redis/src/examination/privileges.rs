use fred::types::Value;
use fred::util::redis_keyslot;
use leasehold_core::{Finding, LockKey};

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::endpoint::Endpoint;
use crate::client::value::text;
use crate::examination::needs::{Needs, user_of};
use crate::keyspace::names::Namespace;

/// Answers the places of the commands that the user may not send, or `old` where the server cannot tell.
const SCRIPT: &str = "
if not redis.acl_check_cmd then return 'old' end
local denied = {}
for place, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do words[#words + 1] = word == '@' and KEYS[1] or word end
  if not redis.acl_check_cmd(unpack(words)) then denied[#denied + 1] = tostring(place) end
end
return denied";

/// Which commands, keys and channels the user of a URL lacks: a finding for each.
pub(super) async fn examine(
    connection: &Connection,
    endpoint: &Endpoint,
    namespace: &Namespace,
    needs: &Needs,
) -> Vec<Finding> {
    let Ok(key) = LockKey::new("leasehold doctor") else { return Vec::new() };
    let (key, channel) = (namespace.of(&key).part("doctor"), namespace.own("doctor"));
    let (user, prefix) = (user_of(endpoint), namespace.own("").trim_end_matches("}:").to_owned());
    let lacks = |what: &str, right: String| {
        Finding::error("privilege", format!("the user {user} {what}")).cure(format!("ACL SETUSER {user} {right}"))
    };
    let slot = Target::Slot(redis_keyslot(key.as_bytes()));
    let commands = || needs.commands.iter().chain(needs.spare);
    let full: Vec<String> = commands().map(|command| example(command)).collect();
    let words: Vec<&str> = [SCRIPT, "1", &key].into_iter().chain(full.iter().map(String::as_str)).collect();
    let denied = match connection.ask("EVAL", &words, slot.clone()).await {
        Ok(Value::Array(places)) => places,
        Ok(_) => {
            let text = "the server is older than 7.0, and does not tell the rights of a user";
            return vec![
                Finding::unknown("privilege", text).cure("compare ACL LIST with the rule of the store's README"),
            ];
        }
        Err(error) => {
            let said = error.to_string();
            return vec![match (said.contains("NOPERM"), said.contains("key")) {
                (true, true) => lacks("may not use the names of locks", format!("~{prefix}*")),
                (true, false) => lacks("may not run scripts", "+eval +evalsha".to_owned()),
                _ => {
                    let text = format!("the rights of a user cannot be read: {said}");
                    Finding::unknown("privilege", text).cure("ask again")
                }
            }];
        }
    };
    let mut findings = Vec::new();
    // The error tells a channel from a command, and the script does not.
    let published = connection.ask("PUBLISH", &[&channel, ""], slot).await;
    let no_channel = published.as_ref().is_err_and(|error| error.to_string().contains("channel"));
    if no_channel {
        findings.push(lacks("may not use the channels of locks", format!("&{prefix}*")));
    }
    for place in denied {
        let command = text(&place).parse::<usize>().ok().and_then(|place| commands().nth(place.checked_sub(1)?));
        let Some(command) = command else { continue };
        if no_channel && matches!(*command, "publish" | "subscribe") {
            continue;
        }
        let name = command.replace('|', " ").to_uppercase();
        let mut finding = lacks(&format!("may not send {name}"), format!("+{command}"));
        if needs.spare.contains(command) {
            finding.health = leasehold_core::Health::Warning;
            finding.text.push_str(", so that waits take longer, or less is told");
        }
        findings.push(finding);
    }
    if findings.is_empty() {
        findings.push(Finding::well("privilege", format!("the user {user} has all rights that locks need")));
    }
    findings
}

/// A command of this name, with `@` for the key or the channel: how many words a command takes is not asked.
fn example(command: &str) -> String {
    match command.split_once('|') {
        Some((container, sub)) => format!("{container} {sub} @"),
        None if command.starts_with("eval") => format!("{command} x 0"),
        None => format!("{command} @"),
    }
}
