use std::time::Duration;

use fred::types::Value;
use fred::util::redis_keyslot;
use futures::future::join_all;
use leasehold_core::Result;

use crate::client::command::Target;
use crate::client::connection::{CommandError, Connection};
use crate::script::arguments::ScriptArguments;
use crate::script::reply::Reply;
use crate::script::source::Script;

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
        let names = keys.into_iter().fold(ScriptArguments::new(), |all, key| all.text(&key));
        let count = names.count();
        let all = arguments.into_iter().fold(names, |all, argument| all.text(&argument));
        self.ask(script, count, all, within).await
    }

    /// The same, with keys and arguments in one piece of memory: so many keys, then the arguments.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn ask(
        &self,
        script: &Script,
        keys: usize,
        arguments: ScriptArguments,
        within: Option<Duration>,
    ) -> Result<Reply> {
        let arguments = arguments.encode();
        self.evaluate(script, keys, arguments.iter(), self.limit(within)).await
    }

    /// The command timeout or less.
    pub(crate) fn limit(&self, within: Option<Duration>) -> Duration {
        within.map_or(self.command_timeout(), |limit| limit.min(self.command_timeout()))
    }

    /// `arguments`: so many keys, then the arguments.
    pub(crate) async fn evaluate(
        &self,
        script: &Script,
        keys: usize,
        arguments: impl Iterator<Item = Value> + Clone,
        limit: Duration,
    ) -> Result<Reply> {
        let first = arguments.clone().next().filter(|_| self.is_clustered() && keys > 0);
        let slot = Target::Slot(first.and_then(|key| key.as_bytes().map(redis_keyslot)).unwrap_or_default());
        let keys = Value::from(keys.to_string());
        let arguments = |script| [script, keys.clone()].into_iter().chain(arguments.clone()).collect();
        let known = self.send("EVALSHA", arguments(Value::String(script.sha())), slot.clone(), limit).await;
        match known {
            Err(CommandError::Sent(error, _)) if error.details().starts_with("NOSCRIPT") => {
                let source = arguments(Value::from(&*script.source));
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

    /// What a script that only reads says of these names, in their order, one answer for each.
    ///
    /// # Errors
    /// As [`classify`](crate::classify) says.
    pub async fn inspect(&self, script: &Script, names: Vec<String>) -> Result<Vec<Reply>> {
        let batches = names.chunks(self.keys_in_a_script());
        let ask = async |names: &[String]| Ok(self.run(script, names.to_vec(), [], None).await?.each_of(names.len()));
        let asked: Vec<Result<Vec<Reply>>> = join_all(batches.map(ask)).await;
        let mut seen: Vec<Reply> = Vec::with_capacity(names.len());
        for replies in asked {
            seen.extend(replies?);
        }
        Ok(seen)
    }
}
