use std::time::Duration;

use leasehold_core::{Answers, Attempt, BoxFuture, Claim, Mode, Operations, OwnerId, Result};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::reply::{column, epoch, micros, only};
use crate::sessions::{Sessions, Step};

const CLAIM: &str = "SELECT granted, busy FROM {schema}.claim($1, $2, $3, $4, $5, $6, $7, $8)";

/// The claims of one locker.
#[derive(Debug)]
pub(crate) struct Claims {
    sessions: Sessions,
    /// Whose mark the mark of a waiting writer is. Its claims cannot say so, because each has another owner.
    client: OwnerId,
}

impl Claims {
    pub(crate) fn new(sessions: Sessions) -> Self {
        Self { sessions, client: OwnerId::random() }
    }

    /// Without an answer for a row that another session has locked, if there are several.
    async fn many(&self, requests: &[&<Self as Operations>::Request]) -> Result<Answers<Self>> {
        let each = || requests.iter().map(|(_, claim)| claim);
        let names: Vec<&[u8]> = requests.iter().map(|(name, _)| name.as_slice()).collect();
        let owners: Vec<&[u8]> = each().map(|claim| claim.owner.as_bytes().as_slice()).collect();
        let shared: Vec<bool> = each().map(|claim| claim.mode == Mode::Shared).collect();
        let waits: Vec<bool> = each().map(|claim| claim.waits).collect();
        let ttls: Vec<i64> = each().map(|claim| micros(claim.ttl)).collect();
        let labels: Vec<Option<&[u8]>> = each().map(|claim| texts(claim)[0]).collect();
        let reasons: Vec<Option<&[u8]>> = each().map(|claim| texts(claim)[1]).collect();
        let params = [
            (&self.client.as_bytes().as_slice() as _, Type::BYTEA),
            (&names as _, Type::BYTEA_ARRAY),
            (&owners as _, Type::BYTEA_ARRAY),
            (&shared as _, Type::BOOL_ARRAY),
            (&waits as _, Type::BOOL_ARRAY),
            (&ttls as _, Type::INT8_ARRAY),
            (&labels as _, Type::BYTEA_ARRAY),
            (&reasons as _, Type::BYTEA_ARRAY),
        ];
        let attempt = |row: &Row| match (
            column::<Option<i64>>(row, 0, Self::NAME)?,
            column::<Option<i64>>(row, 1, Self::NAME)?,
        ) {
            (Some(granted), _) => Ok(Some(Attempt::Granted { epoch: Some(epoch(granted, Self::NAME)?) })),
            (None, Some(left)) => {
                Ok(Some(Attempt::Busy { retry_in: u64::try_from(left).ok().map(Duration::from_micros) }))
            }
            (None, None) => Ok(None),
        };
        self.sessions.run_each(Step::new(Self::NAME, CLAIM), &params, requests.len(), attempt).await
    }
}

/// Label and reason, as parameters. They are bytes in the database, whose encoding may not have their characters.
pub(crate) fn texts(claim: &Claim) -> [Option<&[u8]>; 2] {
    [&claim.label, &claim.reason].map(|text| text.as_deref().map(str::as_bytes))
}

impl Operations for Claims {
    /// A claim, behind the name of its row.
    type Request = (Vec<u8>, Claim);
    type Answer = Attempt;
    const NAME: &'static str = "acquire";

    fn row((name, _): &Self::Request) -> Option<&[u8]> {
        Some(name)
    }

    fn alone<'a>(&'a self, request: &'a Self::Request) -> BoxFuture<'a, Result<Attempt>> {
        Box::pin(async move { only(self.many(&[request]).await?, Self::NAME) })
    }

    fn together<'a>(&'a self, requests: &'a [&'a Self::Request]) -> BoxFuture<'a, Result<Answers<Self>>> {
        Box::pin(self.many(requests))
    }
}
