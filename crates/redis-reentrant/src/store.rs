use std::time::Duration;

use futures::future::join;
use leasehold_core::{Error, ErrorKind, GrantRef, LeaseStatus, Result, SessionId, Waiters};
use leasehold_redis::{Confirmation, Connection, GroupCommit, Names, Namespace, PubSub, Reply, script_error};

/// The parts of a key's names, see the README.
pub(crate) const LOCK: &str = "lock";
pub(crate) const FENCE: &str = "fence";
pub(crate) const FORCED: &str = "forced";

/// What the sessions of one [`RedisReentrant`](crate::RedisReentrant) share.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) connection: Connection,
    pub(crate) commits: GroupCommit,
    pub(crate) names: Names,
    /// Who waits for a key, through any of the sessions.
    pub(crate) waiters: Waiters,
    pub(crate) signals: PubSub,
    /// How long the counter of a key is kept after its last grant.
    pub(crate) fence_retention: Duration,
    /// How often one session may hold a key at the same time.
    pub(crate) max_depth: u32,
    pub(crate) confirmation: Option<Confirmation>,
}

impl Store {
    pub(crate) fn new(
        connection: Connection,
        namespace: &Namespace,
        commits: GroupCommit,
        fence_retention: Duration,
        max_depth: u32,
        confirmation: Option<Confirmation>,
    ) -> Self {
        let names = Names::new(namespace);
        let signals = PubSub::new(&connection, &names);
        Self { connection, commits, names, waiters: Waiters::new(), signals, fence_retention, max_depth, confirmation }
    }

    /// Reads what a script says of one grant of the session `id`: `held`, `gone`, or why it cannot be said.
    pub(crate) async fn lease_status(&self, id: &str, answer: &Reply, grant: &GrantRef) -> Result<LeaseStatus> {
        match *answer.words() {
            ["held", ..] => Ok(LeaseStatus::Held),
            ["gone"] => Ok(self.why_not_held(id, grant).await),
            ref words => Err(self.script_error(words)),
        }
    }

    /// Asks apart from the script itself, so that the script touches one key only: a Cluster refuses scripts on several
    /// keys while a slot moves. If nobody answers, the grant is gone all the same.
    async fn why_not_held(&self, id: &str, grant: &GrantRef) -> LeaseStatus {
        match Box::pin(self.connection.get(&self.names.of(&grant.key).part(FORCED))).await {
            Ok(Some(whose)) if whose == format!("{} {id}", epoch_argument(grant)) => LeaseStatus::ForceReleased,
            _ => LeaseStatus::NotHeld,
        }
    }

    /// Ends the connection and the subscriptions of all sessions.
    pub(crate) async fn close(&self) {
        join(self.signals.close(), self.connection.close()).await;
    }

    /// The error for an answer that is none of a script's own results.
    pub(crate) fn script_error(&self, words: &[&str]) -> Error {
        if let ["foreign", key, "string"] = *words {
            let whose = "is not of a session: another backend may lock there; give each a namespace of its own";
            let told = self.connection.quote(&format!("the entry `{key}` {whose}"));
            return Error::new(ErrorKind::Backend, "ask Redis").detail(told);
        }
        script_error(&self.connection, words)
    }
}

/// The epoch of a grant as scripts take it; empty if it is not known.
pub(crate) fn epoch_argument(grant: &GrantRef) -> String {
    grant.epoch.map(|epoch| epoch.to_string()).unwrap_or_default()
}

/// The public id of a session: the first 16 digits of the digest of its secret id. `None`: the text is no digest.
pub(crate) fn session_id(digest: &str) -> Option<SessionId> {
    u64::from_str_radix(digest.get(..16)?, 16).ok().map(SessionId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_digest_is_no_session() {
        for odd in ["", "0123456789abcde", "0123456789abcdex", "ééééééééé"] {
            assert_eq!(session_id(odd), None, "{odd}");
        }
    }
}
