use std::time::Duration;

use leasehold_core::{Backend, LeaseStatus, Renewal, Result};

use crate::store::Store;

pub(crate) async fn renew(store: &Store, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
    match store.memory() {
        Ok(memory) => memory.renew(renewals, within).await,
        Err(closed) => vec![Err(closed); renewals.len()],
    }
}
