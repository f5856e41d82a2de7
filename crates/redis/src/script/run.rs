use std::time::Duration;

use fred::types::Value;
use fred::util::redis_keyslot;
use leasehold_core::Result;

use crate::client::command::{Command, SendError, Target};
use crate::client::connection::Connection;
use crate::script::arguments::ScriptArguments;
use crate::script::reply::Reply;
use crate::script::source::{Script, ScriptText};

impl Connection {
    /// The command timeout or less.
    pub(crate) fn limit(&self, within: Option<Duration>) -> Duration {
        within.map_or(self.command_timeout(), |limit| limit.min(self.command_timeout()))
    }

    /// Runs a script on keys of one hash slot; `arguments` are that many keys, then the arguments.
    ///
    /// It is sent by its digest, and by its source if the server does not know it: two round trips once after each start
    /// of the server.
    pub(crate) async fn evaluate(
        &self,
        script: &ScriptText,
        keys: usize,
        arguments: impl Iterator<Item = Value> + Clone,
        limit: Duration,
    ) -> Result<Reply> {
        let first = arguments.clone().next().filter(|_| self.is_clustered() && keys > 0);
        let slot = Target::Slot(first.and_then(|key| key.as_bytes().map(redis_keyslot)).unwrap_or_default());
        let keys = Value::from(keys.to_string());
        let arguments = |script| [script, keys.clone()].into_iter().chain(arguments.clone()).collect();
        let known = self.send("EVALSHA", arguments(Value::String(script.sha.clone())), slot.clone(), limit).await;
        let answer = match known {
            Err(SendError::Sent(error)) if error.details().starts_with("NOSCRIPT") => {
                let source = arguments(Value::from(&*script.source));
                Box::pin(self.send("EVAL", source, slot, limit)).await
            }
            known => known,
        };
        answer.map(Reply).map_err(|failed| self.unanswered(failed))
    }

    /// Runs a script on one key with a `WAIT` right behind it, on the same connection: its answer, and how many replicas have what it
    /// wrote.
    pub(crate) async fn run_and_wait(
        &self,
        script: &Script,
        arguments: ScriptArguments,
        wait: Vec<Value>,
        limit: Duration,
    ) -> Result<(Reply, u64)> {
        let encoded = arguments.encode();
        let key = encoded.iter().next().and_then(|key| key.as_bytes().map(redis_keyslot));
        // By its source: there is no second try for a server that does not know the digest.
        let begin = [Value::from(&*script.text().source), Value::from("1")];
        let arguments = begin.into_iter().chain(encoded.iter()).collect();
        let target = Target::Slot(key.unwrap_or_default());
        let command = Command { name: "EVAL", arguments, target, wait: Some(wait) };
        let answers = self.send_command(command, limit).await.map_err(|failed| self.unanswered(failed))?;
        let mut answers = answers.into_array().into_iter();
        let (answer, count) = (answers.next().unwrap_or(Value::Null), answers.next());
        Ok((Reply(answer), count.and_then(|count| count.as_u64()).unwrap_or(0)))
    }

    /// How many locks one script may touch: in a Cluster one, because two are hardly ever in the same slot, and while a
    /// slot moves it takes no command on several keys.
    pub(crate) fn keys_in_a_script(&self) -> usize {
        if self.is_clustered() { 1 } else { 250 }
    }

    /// Runs a script by itself, in no batch; `arguments` are that many keys, then the arguments.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: usize,
        arguments: ScriptArguments,
        within: Option<Duration>,
    ) -> Result<Reply> {
        self.evaluate(script.text(), keys, arguments.encode().iter(), self.limit(within)).await
    }
}
