use leasehold_core::{Answers, BoxFuture, LeaseStatus, Operations, OwnerId, Result};
use tokio_postgres::types::Type;

use crate::reply::{only, status};
use crate::sessions::{Sessions, Step};

const RELEASE: &str = "SELECT * FROM {schema}.release($1, $2)";

/// The releases of one locker.
#[derive(Debug)]
pub(crate) struct Releases(pub(crate) Sessions);

impl Releases {
    /// Without an answer for a row that another session has locked, if there are several.
    async fn many(&self, requests: &[&(Vec<u8>, OwnerId)]) -> Result<Answers<Self>> {
        let names: Vec<&[u8]> = requests.iter().map(|(name, _)| name.as_slice()).collect();
        let owners: Vec<&[u8]> = requests.iter().map(|(_, owner)| owner.as_bytes().as_slice()).collect();
        let params = [(&names as _, Type::BYTEA_ARRAY), (&owners as _, Type::BYTEA_ARRAY)];
        let step = Step::new(Self::NAME, RELEASE);
        self.0.run_each(step, &params, requests.len(), |row| status(row, Self::NAME)).await
    }
}

impl Operations for Releases {
    /// The owner, behind the name of the row.
    type Request = (Vec<u8>, OwnerId);
    type Answer = LeaseStatus;
    const NAME: &'static str = "release";

    fn row((name, _): &Self::Request) -> Option<&[u8]> {
        Some(name)
    }

    fn alone<'a>(&'a self, request: &'a Self::Request) -> BoxFuture<'a, Result<LeaseStatus>> {
        Box::pin(async move { only(self.many(&[request]).await?, Self::NAME) })
    }

    fn together<'a>(&'a self, requests: &'a [&'a Self::Request]) -> BoxFuture<'a, Result<Answers<Self>>> {
        Box::pin(self.many(requests))
    }
}
