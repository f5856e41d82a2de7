use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use fred::bytes_utils::Str;
use fred::types::Value;
use fred::types::config::Server;
use fred::util::{redis_keyslot, sha1_hash};
use leasehold_core::{Error, ErrorKind, Result};

use crate::connection::{Failed, Target};
use crate::{Connection, Words};

/// A Lua script that runs in the server as one atomic step.
///
/// House rules: scripts answer with words, in a list or divided by spaces, they raise nothing after the first write; numbers travel as text; the first
/// element of an answer is a word of the script's own (the driver takes a list that starts with `message` for a
/// signal); all keys are passed, none is built inside.
pub struct Script {
    source: Cow<'static, str>,
    sha: OnceLock<Str>,
}

impl Script {
    /// From its source.
    pub const fn new(source: &'static str) -> Self {
        Self { source: Cow::Borrowed(source), sha: OnceLock::new() }
    }

    pub(crate) fn composed(source: String) -> Self {
        Self { source: Cow::Owned(source), sha: OnceLock::new() }
    }

    fn sha(&self) -> Str {
        self.sha.get_or_init(|| Str::from(sha1_hash(&self.source))).clone()
    }
}

/// The 40 hexadecimal digits that `redis.sha1hex` has for a text.
pub fn digest(text: &str) -> String {
    sha1_hash(text)
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.sha()).finish()
    }
}

impl Connection {
    /// Runs a script on keys of one hash slot, within the command timeout or less.
    ///
    /// By its digest, and by its source if the server does not know it: two trips once after each server start.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says.
    pub async fn run(
        &self,
        script: &Script,
        keys: impl IntoIterator<Item = String>,
        arguments: impl IntoIterator<Item = String>,
        within: Option<Duration>,
    ) -> Result<Reply> {
        let words = keys.into_iter().fold(Words::new(), |words, key| words.text(&key));
        let count = words.count();
        let words = arguments.into_iter().fold(words, |words, argument| words.text(&argument));
        self.ask(script, count, words, within).await
    }

    /// The same, with keys and arguments in one piece of memory: so many keys, then the arguments.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn ask(&self, script: &Script, keys: usize, words: Words, within: Option<Duration>) -> Result<Reply> {
        let words = words.finish();
        self.evaluate(script, keys, words.iter(), self.limit(within)).await
    }

    /// The command timeout or less.
    pub(crate) fn limit(&self, within: Option<Duration>) -> Duration {
        within.map_or(self.command_timeout(), |limit| limit.min(self.command_timeout()))
    }

    /// `words`: so many keys, then the arguments.
    pub(crate) async fn evaluate(
        &self,
        script: &Script,
        keys: usize,
        words: impl Iterator<Item = Value> + Clone,
        limit: Duration,
    ) -> Result<Reply> {
        let first = words.clone().next().filter(|_| self.is_clustered() && keys > 0);
        let slot = Target::Slot(first.and_then(|key| key.as_bytes().map(redis_keyslot)).unwrap_or_default());
        let keys = Value::from(keys.to_string());
        let words = |script| [script, keys.clone()].into_iter().chain(words.clone()).collect();
        let known = self.send("EVALSHA", words(Value::String(script.sha())), slot.clone(), limit).await;
        match known {
            Err(Failed::There(error, _)) if error.details().starts_with("NOSCRIPT") => {
                let source = words(Value::from(&*script.source));
                Ok(Reply(Box::pin(self.send("EVAL", source, slot, limit)).await?))
            }
            answer => Ok(Reply(answer?)),
        }
    }

    /// How many locks one script may touch: in a Cluster one, because two are hardly ever in the same slot, and while
    /// that moves it takes no command on several keys.
    pub fn keys_in_a_script(&self) -> usize {
        if self.is_clustered() { 1 } else { 250 }
    }

    /// How many replicas have all that this connection wrote on a node, after waiting until it is `replicas` of them, or
    /// for `within`. Everything else on the connection waits as long.
    ///
    /// The same connection that wrote: on another, Redis counts what *that* one wrote, which is nothing.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says.
    pub(crate) async fn confirm(&self, node: Option<Server>, replicas: u32, within: Duration) -> Result<u64> {
        let words = [replicas.to_string(), within.as_millis().to_string()].map(Value::from).to_vec();
        let limit = within.saturating_add(self.command_timeout());
        let answer = self.send("WAIT", words, Target::Node(node), limit).await?;
        Ok(answer.as_u64().unwrap_or(0))
    }

    /// The text under a name, if there is one.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says.
    pub async fn get(&self, name: &str) -> Result<Option<String>> {
        let slot = Target::Slot(redis_keyslot(name.as_bytes()));
        let value = self.send("GET", vec![Value::from(name)], slot, self.command_timeout()).await?;
        Ok(Some(value).filter(|value| !value.is_null()).map(|value| text(&value).to_owned()))
    }
}

/// What a script answered.
#[derive(Clone, Debug)]
pub struct Reply(Value);

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl Reply {
    /// The answers that it is a list of.
    pub fn each(self) -> Vec<Self> {
        match self.0 {
            Value::Array(items) => items.into_iter().map(Self).collect(),
            _ => Vec::new(),
        }
    }

    /// So many answers. If there are more or fewer, nobody knows which belongs to what, and none has words.
    pub fn each_of(self, count: usize) -> Vec<Self> {
        let answers = self.each();
        if answers.len() == count { answers } else { (0..count).map(|_| Self(Value::Null)).collect() }
    }

    /// Its words. In one text they are divided by a space, of which the last may have more.
    pub fn words(&self) -> Vec<&str> {
        match &self.0 {
            Value::Array(items) => items.iter().map(text).collect(),
            Value::Null => Vec::new(),
            line => {
                let line = text(line);
                line.splitn(if line.starts_with("refused ") { 2 } else { 3 }, ' ').collect()
            }
        }
    }
}

/// Empty if it is none, or not UTF-8: we write nothing else.
fn text(value: &Value) -> &str {
    utf8(value).unwrap_or_default()
}

pub(crate) fn utf8(value: &Value) -> Option<&str> {
    value.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
}

/// The answers that every script may give instead of its own.
///
/// `foreign`, key, type: there is an entry under our name that we did not write. `refused`, reply: the server refused
/// a step.
pub fn trouble(connection: &Connection, words: &[&str]) -> Error {
    match *words {
        ["foreign", key, kind] => {
            let kind = if kind.is_empty() { "another type" } else { kind };
            let told = format!("the entry `{key}` is not Leasehold's: {kind}; look at it, then delete or rename it");
            Error::new(ErrorKind::Backend, "ask Redis").detail(connection.quote(&told))
        }
        ["refused", reply] => connection.refused(reply),
        _ => Error::new(ErrorKind::Backend, "ask Redis").detail("the script gave an answer that nobody understands"),
    }
}
