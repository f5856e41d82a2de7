use std::sync::Arc;

use leasehold_core::{Answers, BoxFuture, Operations, Result};

use crate::failure::is_lease_gone;
use crate::nodes::{Nodes, Step};
use crate::proto::{Operation, TXN, TxnRequest, TxnResponse};

/// The transactions of claims and releases, each about one key. Several go as transactions inside of one, which takes one round
/// trip, and is written to the disks of a majority once.
#[derive(Debug)]
pub(crate) struct Commits(pub(crate) Arc<Nodes>);

/// A transaction, behind the name of its line.
pub(crate) type Commit = (Vec<u8>, TxnRequest);

impl Commits {
    async fn txn(&self, txn: TxnRequest) -> Result<TxnResponse> {
        self.0.ask(Step { operation: Self::NAME, path: TXN, writes: true }, txn).await
    }
}

impl Operations for Commits {
    type Request = Commit;
    type Answer = TxnResponse;
    const NAME: &'static str = "acquire or release";

    fn row((line, _): &Commit) -> Option<&[u8]> {
        Some(line)
    }

    fn alone<'a>(&'a self, (_, txn): &'a Commit) -> BoxFuture<'a, Result<TxnResponse>> {
        Box::pin(self.txn(txn.clone()))
    }

    fn together<'a>(&'a self, requests: &'a [&'a Commit]) -> BoxFuture<'a, Result<Answers<Self>>> {
        let success = requests.iter().map(|(_, txn)| Operation::txn(txn.clone())).collect();
        Box::pin(async move {
            let all = TxnRequest { success, ..TxnRequest::default() };
            match self.txn(all).await {
                Ok(answer) => {
                    let mut inner = answer.inner().into_iter();
                    Ok(requests.iter().map(|_| inner.next().map(Ok)).collect())
                }
                // The lease of one of them: nothing was carried out.
                Err(error) if is_lease_gone(&error) => Ok(requests.iter().map(|_| None).collect()),
                Err(error) => Err(error),
            }
        })
    }
}
