use fred::types::Value;
use fred::util::redis_keyslot;
use futures::future::join_all;
use leasehold_core::{FencingToken, Finding, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::client::value::text;
use crate::examination::needs::Form;
use crate::keyspace::entry::Entry;
use crate::keyspace::names::Namespace;

/// How many entries of each part are looked at, at least.
const MOST: usize = 1000;

/// The type of an entry, what is left of its lease in ms, and how its text begins; of a hash, whether it has the field that the
/// argument names, if any.
const LOOK: &str = "
local kind, begins = redis.call('TYPE', KEYS[1]).ok, ''
if kind == 'string' then
  begins = string.sub(redis.call('GET', KEYS[1]), 1, 256)
elseif kind == 'hash' and ARGV[1] ~= '' then
  begins = redis.call('HMGET', KEYS[1], ARGV[1])[1] and ARGV[1] or ''
end
return {kind, tostring(redis.call('PTTL', KEYS[1])), begins}";

/// What is wrong with an entry, and the cure; `None`: that it is deleted.
type Foreign = (String, Option<&'static str>);

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
    let tell = |(name, (why, cure)): &(String, Foreign)| {
        let name = connection.quote(&printable(name));
        let cure = cure.map_or_else(|| format!("DEL {name}"), str::to_owned);
        Finding::warning("foreign-entry", format!("{name} {why}")).cure(cure)
    };
    let more = |others| format!("{others} more entries are not of Leasehold");
    Finding::first_of(foreign.iter().map(tell).collect(), more, "delete the others, and ask again")
}

/// How many entries there were, and the foreign ones.
async fn look(connection: &Connection, pattern: &str, form: Form) -> Result<(usize, Vec<(String, Foreign)>)> {
    let field = if let Form::Hash(field) = form { field } else { "" };
    let (mut looked, mut foreign, mut after) = (0, Vec::new(), None);
    while looked < MOST {
        let (names, next) = connection.scan(pattern, after.as_ref()).await?;
        for names in names.chunks(64) {
            let answers = join_all(names.iter().map(|name| {
                let slot = Target::Slot(redis_keyslot(name.as_bytes()));
                async move { connection.ask("EVAL", &[LOOK, "1", name, field], slot).await }
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
        let Some(next) = next else { break };
        after = Some(next);
    }
    Ok((looked, foreign))
}

/// What is wrong with an entry, if it is none of this backend's.
fn is_foreign(form: Form, kind: &str, left: &str, begins: &str) -> Option<Foreign> {
    /// Deleting a lock that is held, or a counter, would let two hold one key, or give tokens again.
    const APART: &str = "name a namespace of its own in the URL of each backend: ?namespace=NAME";
    let keys = if matches!(form, Form::Counter(_)) { "the keys that it counts" } else { "its key" };
    let closed = |what: &str| format!("{what}, so that nobody can lock {keys}");
    let wanted = match form {
        Form::Hash(_) | Form::Queue => "hash",
        Form::SortedSet => "zset",
        Form::Entry | Form::Counter(_) | Form::Text => "string",
    };
    let lasts = left != "-1";
    let is_of_another = match (form, kind) {
        (Form::Entry, "hash") => true,
        (Form::Hash(_), "string") => Entry::read(begins).is_ours(),
        (Form::Hash(field), "hash") => begins != field,
        _ => false,
    };
    Some(match (form, kind) {
        // It ended meanwhile.
        (_, "none") => return None,
        _ if is_of_another && lasts => (closed("is a lock of another backend"), Some(APART)),
        (Form::Entry | Form::Hash(_) | Form::Counter(_), _) if kind != wanted => {
            (closed(&format!("is a {} and no {wanted}", kind.escape_debug())), None)
        }
        (Form::Queue | Form::Text | Form::SortedSet, _) if kind != wanted => {
            (format!("is a {} and no {wanted}, which Leasehold did not write", kind.escape_debug()), None)
        }
        (Form::Entry | Form::Hash(_), _) if !lasts => (closed("has no lease"), None),
        (Form::Entry, _) if !Entry::read(begins).is_ours() => (closed("does not begin with a holder"), None),
        (Form::Counter(word), _) => {
            let number = |word: &str| begins.strip_prefix(word)?.trim_start_matches(' ').parse::<u64>().ok();
            let other = if word.is_empty() { "epoch" } else { "" };
            match (number(word), number(other)) {
                (Some(number), _) if number < FencingToken::MAX_EPOCH => return None,
                (Some(_), _) => (closed("is a counter that has come to its end"), None),
                (None, Some(_)) => (closed("is a counter of another backend"), Some(APART)),
                (None, None) => (closed("is no counter"), None),
            }
        }
        (Form::Queue, _) if !lasts => ("has no lease, which Leasehold did not write".to_owned(), None),
        _ => return None,
    })
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
    fn what_is_deleted_is_no_lock_that_another_backend_may_hold_and_no_counter_of_one() {
        const SESSION: Form = Form::Hash("epoch");
        const EPOCH: Form = Form::Counter("epoch");
        const NUMBER: Form = Form::Counter("");
        // Its cure: nothing, to delete it, or to keep two backends apart.
        for (form, kind, left, begins, cure) in [
            (Form::Entry, "string", "100", ENTRY, ""),
            (Form::Entry, "none", "-2", "", ""),
            (Form::Entry, "string", "-1", ENTRY, "DEL"),
            (Form::Entry, "string", "100", "hello", "DEL"),
            (Form::Entry, "list", "100", "", "DEL"),
            (Form::Entry, "hash", "100", "", "namespace"),
            (Form::Entry, "hash", "-1", "", "DEL"),
            (SESSION, "hash", "100", "epoch", ""),
            (SESSION, "hash", "-1", "epoch", "DEL"),
            (SESSION, "hash", "100", "", "namespace"),
            (SESSION, "string", "100", ENTRY, "namespace"),
            (SESSION, "string", "-1", ENTRY, "DEL"),
            (SESSION, "string", "100", "hello", "DEL"),
            (EPOCH, "string", "100", "epoch 7", ""),
            (EPOCH, "string", "-1", "epoch 7", ""),
            (EPOCH, "string", "100", "epoch 140737488355327", "DEL"),
            (EPOCH, "string", "100", "epoch x", "DEL"),
            (EPOCH, "string", "100", "junk", "DEL"),
            (EPOCH, "string", "100", "7", "namespace"),
            (EPOCH, "hash", "100", "", "DEL"),
            (NUMBER, "string", "100", "7", ""),
            (NUMBER, "string", "100", "", "DEL"),
            (NUMBER, "string", "100", "epoch 7", "namespace"),
            (Form::Text, "string", "-1", "anything", ""),
            (Form::Text, "hash", "100", "", "DEL"),
            (Form::Queue, "hash", "100", "", ""),
            (Form::Queue, "hash", "-1", "", "DEL"),
            (Form::Queue, "string", "100", ENTRY, "DEL"),
            (Form::SortedSet, "zset", "100", "", ""),
            (Form::SortedSet, "hash", "100", "", "DEL"),
        ] {
            let found = match is_foreign(form, kind, left, begins) {
                None => "",
                Some((_, None)) => "DEL",
                Some((_, Some(cure))) => cure,
            };
            assert!(
                found.contains(cure) && cure.is_empty() == found.is_empty(),
                "{form:?} {kind} {left} {begins}: {found}"
            );
        }
    }

    #[test]
    fn a_name_can_be_given_to_the_shell_of_redis() {
        assert_eq!(printable("{leasehold:k}:lock"), "{leasehold:k}:lock");
        assert_eq!(printable("{leasehold:a\n\"b}:lock"), r#""{leasehold:a\n\"b}:lock""#);
        assert_eq!(printable("{leasehold:é\u{1b}}:lock"), r#""{leasehold:\xc3\xa9\x1b}:lock""#);
    }
}
