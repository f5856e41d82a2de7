use std::time::Duration;

use fred::types::Value;
use fred::types::config::Server;
use fred::util::redis_keyslot;
use futures::future::{BoxFuture, join_all};
use leasehold_core::{Attempt, Error, ErrorKind, GrantRef, LeaseStatus, Result};

use crate::client::command::Target;
use crate::client::connection::Connection;

/// How many replicas must have a grant or a renewal before it counts, and how long they may take.
///
/// Replication is asynchronous: a fail-over can forget what was just written, and a primary that is cut off goes on
/// writing what its successor never hears of. With this neither counts, as long as a replica that confirmed is the one
/// that is promoted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmation {
    replicas: u32,
    within: Duration,
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

    /// See [`Store::confirm`](crate::Store::confirm).
    pub(crate) fn confirm<'a>(
        self,
        connection: &'a Connection,
        name: String,
        grant: &'a GrantRef,
        give_back: BoxFuture<'a, Result<LeaseStatus>>,
    ) -> BoxFuture<'a, Result<Attempt>> {
        Box::pin(async move {
            let nodes = connection.writers(redis_keyslot(name.as_bytes()));
            let what = "the grant, which was given back,";
            let asked = nodes.into_iter().map(|node| self.shortfall(connection, node, what));
            let Some(short) = join_all(asked).await.into_iter().flatten().next() else {
                return Ok(Attempt::Granted { epoch: grant.epoch });
            };
            let unknown = |error| Error::new(ErrorKind::Indeterminate, "acquire").caused_by(error);
            Err(give_back.await.map_or_else(unknown, |_| short))
        })
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
        match connection.wait_for_replicas(node, self.replicas, self.within).await {
            Ok(confirmed) if confirmed >= u64::from(self.replicas) => None,
            Ok(confirmed) => Some(Error::new(ErrorKind::Unavailable, "ask Redis").detail(format!(
                "{confirmed} of {} replicas confirmed {what} within {:?}",
                self.replicas, self.within
            ))),
            Err(error) => Some(error),
        }
    }
}

impl Connection {
    /// How many replicas have all that this connection wrote on a node, after waiting until it is `replicas` of them, or
    /// for `within`. Everything else on the connection waits as long.
    ///
    /// The same connection that wrote: on another, Redis counts what *that* one wrote, which is nothing.
    async fn wait_for_replicas(&self, node: Option<Server>, replicas: u32, within: Duration) -> Result<u64> {
        let words = [replicas.to_string(), within.as_millis().to_string()].map(Value::from).to_vec();
        let limit = within.saturating_add(self.command_timeout());
        let answer = self.send("WAIT", words, Target::Node(node), limit).await;
        answer.map(|count| count.as_u64().unwrap_or(0)).map_err(|failed| self.unanswered(failed))
    }
}
