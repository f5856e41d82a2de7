use fred::types::Value;
use fred::util::redis_keyslot;
use futures::future::join_all;
use leasehold_core::{Finding, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::value::text;
use crate::examination::needs::{Form, ask};
use crate::keyspace::entry::Entry;
use crate::keyspace::names::Namespace;

/// How many entries of each part are looked at, at least.
const MOST: usize = 1000;

/// How many foreign entries are told.
const TOLD: usize = 5;

/// The type of an entry, what is left of its lease in ms, and how its text begins.
const LOOK: &str = "
local kind = redis.call('TYPE', KEYS[1]).ok
return {kind, tostring(redis.call('PTTL', KEYS[1])), kind == 'string' and string.sub(redis.call('GET', KEYS[1]), 1, 256) or ''}";

/// Looks for entries under the names of locks that Leasehold did not write: a key with such an entry is refused, or held for
/// ever.
pub(super) async fn examine(
    connection: &Connection,
    user: &str,
    namespace: &Namespace,
    parts: &[(&'static str, Form)],
) -> Vec<Finding> {
    let mut foreign = Vec::new();
    let mut looked = 0;
    for (part, form) in parts {
        match look(connection, &namespace.pattern("", part), *form).await {
            Ok((count, found)) => {
                looked += count;
                foreign.extend(found);
            }
            Err(error) => {
                let text = format!("the names of locks cannot be read: {error}");
                let cure = format!("ACL SETUSER {user} +scan +type +pttl +get");
                return vec![Finding::unknown("foreign-entry", text).cure(cure)];
            }
        }
    }
    if foreign.is_empty() {
        return vec![Finding::well("foreign-entry", format!("nobody else's among {looked} entries of locks"))];
    }
    let more = foreign.len().saturating_sub(TOLD);
    let tell = |(name, why): &(String, String)| {
        let name = connection.quote(&printable(name));
        let text = format!("{name} {why}, so that nobody can lock its key");
        Finding::warning("foreign-entry", text).cure(format!("DEL {name}"))
    };
    let mut findings: Vec<_> = foreign.iter().take(TOLD).map(tell).collect();
    if more > 0 {
        let text = format!("{more} more entries are not of Leasehold");
        findings.push(Finding::warning("foreign-entry", text).cure("delete the others, and ask again"));
    }
    findings
}

/// How many entries there were, and the foreign ones with the reason.
async fn look(connection: &Connection, pattern: &str, form: Form) -> Result<(usize, Vec<(String, String)>)> {
    let (mut looked, mut foreign, mut after) = (0, Vec::new(), None);
    while looked < MOST {
        let (names, next) = connection.scan(pattern, after.as_ref()).await?;
        for names in names.chunks(64) {
            let answers = join_all(names.iter().map(|name| {
                let slot = Target::Slot(redis_keyslot(name.as_bytes()));
                async move { ask(connection, "EVAL", &[LOOK, "1", name], slot).await }
            }));
            for (name, answer) in names.iter().zip(answers.await) {
                looked += 1;
                if let Value::Array(said) = answer?
                    && let [kind, left, begins] = &said[..]
                    && let Some(why) = is_foreign(form, text(kind), text(left), text(begins))
                {
                    foreign.push((name.clone(), why));
                }
            }
        }
        match next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    Ok((looked, foreign))
}

/// Why an entry is none of Leasehold, if it is none.
fn is_foreign(form: Form, kind: &str, left: &str, begins: &str) -> Option<String> {
    let wanted = if form == Form::Hash { "hash" } else { "string" };
    match kind {
        // It ended meanwhile.
        "none" => None,
        _ if kind != wanted => Some(format!("is a {} and no {wanted}", kind.escape_debug())),
        _ if left == "-1" && form != Form::Text => Some("has no lease".to_owned()),
        _ if form == Form::Entry && !Entry::read(begins).is_ours() => Some("does not begin with a holder".to_owned()),
        _ => None,
    }
}

/// A name as the shell of Redis reads it.
fn printable(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte));
    if plain { name.to_owned() } else { format!("\"{}\"", name.as_bytes().escape_ascii()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "0123456789abcdef0123456789abcdef 7 {}";

    #[test]
    fn an_entry_of_another_type_form_or_without_a_lease_is_foreign() {
        for (form, kind, left, begins, foreign) in [
            (Form::Entry, "string", "100", ENTRY, false),
            (Form::Entry, "none", "-2", "", false),
            (Form::Entry, "string", "-1", ENTRY, true),
            (Form::Entry, "string", "100", "hello", true),
            (Form::Entry, "list", "100", "", true),
            (Form::Text, "string", "100", "epoch 7", false),
            (Form::Text, "hash", "100", "", true),
            (Form::Hash, "hash", "100", "", false),
            (Form::Hash, "string", "100", ENTRY, true),
        ] {
            assert_eq!(is_foreign(form, kind, left, begins).is_some(), foreign, "{form:?} {kind} {left} {begins}");
        }
    }

    #[test]
    fn a_name_can_be_given_to_the_shell_of_redis() {
        assert_eq!(printable("{leasehold:k}:lock"), "{leasehold:k}:lock");
        assert_eq!(printable("{leasehold:a\n\"b}:lock"), r#""{leasehold:a\n\"b}:lock""#);
        assert_eq!(printable("{leasehold:é\u{1b}}:lock"), r#""{leasehold:\xc3\xa9\x1b}:lock""#);
    }
}
