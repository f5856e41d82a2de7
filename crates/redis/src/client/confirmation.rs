use std::time::Duration;

use fred::types::Value;
use fred::types::config::Server;
use fred::util::redis_keyslot;
use futures::future::{BoxFuture, join_all};
use leasehold_core::{Error, ErrorKind, LeaseStatus, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;
use crate::script::arguments::ScriptArguments;
use crate::script::source::Script;

/// How many replicas must have a grant or a renewal before it counts, and how long they may take.
///
/// Replication is asynchronous: a fail-over can forget what was just written, and a primary that is cut off goes on
/// writing what its successor never hears of. With this neither counts, as long as a replica that confirmed is the one
/// that is promoted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmation {
    replicas: u32,
    pub(crate) within: Duration,
}

impl Confirmation {
    /// Of so many replicas, within 1 ms to 10 s; `None` for none.
    pub(crate) fn of(replicas: u32, within: Duration) -> Option<Self> {
        (replicas > 0).then_some(Self { replicas, within })
    }

    /// Checks the time.
    pub(crate) fn check(self) -> Result<()> {
        if (Duration::from_millis(1)..=Duration::from_secs(10)).contains(&self.within) {
            return Ok(());
        }
        let why = format!("a confirmation within {:?} is outside 1 ms to 10 s", self.within);
        Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(why))
    }

    /// Renews a grant and has replicas confirm that, on one connection: it may lead to another server than the one that granted,
    /// and that server's replicas know nothing of the grant.
    pub(crate) async fn confirm_by_renewal(
        self,
        connection: &Connection,
        renew: &Script,
        arguments: ScriptArguments,
        what: &str,
    ) -> Result<()> {
        let limit = self.within.saturating_add(connection.command_timeout());
        let (renewed, confirmed) = connection.run_and_wait(renew, arguments, self.words(), limit).await?;
        if renewed.words() != ["held"] {
            let detail = format!("{what} is not on the server that answers now");
            return Err(Error::new(ErrorKind::Unavailable, "ask Redis").detail(detail));
        }
        self.shortage(confirmed, what).map_or(Ok(()), Err)
    }

    /// See [`Store::confirm_renewals`](crate::Store::confirm_renewals).
    pub(crate) fn confirm_renewals(
        self,
        within: Duration,
        connection: &Connection,
        names: Vec<String>,
        mut answers: Vec<Result<LeaseStatus>>,
    ) -> BoxFuture<'_, Vec<Result<LeaseStatus>>> {
        Box::pin(async move {
            // Beside the renewal itself.
            let hasty = Self { within: self.within.min(within / 4).max(Duration::from_millis(1)), ..self };
            let writers: Vec<_> = names.iter().map(|name| connection.writers(redis_keyslot(name.as_bytes()))).collect();
            let held = answers.iter().map(|answer| matches!(answer, Ok(LeaseStatus::Held)));
            let mut nodes: Vec<&Option<Server>> = Vec::new();
            for writer in writers.iter().zip(held).filter(|(_, held)| *held).flat_map(|(writers, _)| writers) {
                if !nodes.contains(&writer) {
                    nodes.push(writer);
                }
            }
            let asked = nodes.iter().map(|node| hasty.shortfall(connection, (*node).clone(), "the renewal"));
            let shortfalls = join_all(asked).await;
            for (answer, writers) in answers.iter_mut().zip(&writers) {
                let short =
                    nodes.iter().zip(&shortfalls).find(|(node, short)| short.is_some() && writers.contains(node));
                if let (Ok(LeaseStatus::Held), Some((_, Some(error)))) = (&answer, short) {
                    *answer = Err(error.retell());
                }
            }
            answers
        })
    }

    async fn shortfall(self, connection: &Connection, node: Option<Server>, what: &str) -> Option<Error> {
        match connection.wait_for_replicas(node, self).await {
            Ok(confirmed) => self.shortage(confirmed, what),
            Err(error) => Some(error),
        }
    }

    fn shortage(self, confirmed: u64, what: &str) -> Option<Error> {
        if confirmed >= u64::from(self.replicas) {
            return None;
        }
        let (replicas, within) = (self.replicas, self.within);
        let detail = format!("{confirmed} of {replicas} replicas confirmed {what} within {within:?}");
        Some(Error::new(ErrorKind::Unavailable, "ask Redis").detail(detail))
    }

    /// The arguments of `WAIT`.
    fn words(self) -> Vec<Value> {
        [self.replicas.to_string(), self.within.as_millis().to_string()].map(Value::from).to_vec()
    }
}

impl Connection {
    /// How many replicas have all that this connection wrote on a node, after waiting until it is enough of them, or for as long as
    /// they may take. Everything else on the connection waits as long.
    async fn wait_for_replicas(&self, node: Option<Server>, confirmation: Confirmation) -> Result<u64> {
        let (words, limit) = (confirmation.words(), confirmation.within.saturating_add(self.command_timeout()));
        let answer = self.send("WAIT", words, Target::Node(node), limit).await;
        answer.map(|count| count.as_u64().unwrap_or(0)).map_err(|failed| self.unanswered(failed))
    }
}
