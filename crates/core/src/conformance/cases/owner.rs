//! Whose a lease is.

use std::time::Duration;

use super::context::TestContext;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Claim, GrantRef, LeaseStatus, OwnerId};

const LONG: Duration = Duration::from_secs(60);

pub(super) async fn c02_a_stranger_can_neither_renew_nor_release(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for &mode in context.modes() {
        let key = context.key();
        let holder = ours.claims(&key, mode, LONG).await?;
        let stranger = GrantRef { owner: OwnerId::random(), ..holder.clone() };
        ensure!(theirs.store.renew(&stranger, LONG).await? != LeaseStatus::Held, "a stranger renewed, {mode}");
        ensure!(theirs.store.release(&stranger).await? != LeaseStatus::Held, "a stranger released, {mode}");
        theirs.finds_it_held(&key).await?;
        let released = ours.store.release(&holder).await?;
        ensure!(released == LeaseStatus::Held, "the holder's own release said {released:?}, {mode}");
    }
    Ok(())
}

pub(super) async fn c02_a_claim_is_idempotent_for_its_owner(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for &mode in context.modes() {
        let claim = Claim::new(&context.key(), mode, LONG);
        let first = ours.store.try_acquire(&claim).await?;
        let second = ours.store.try_acquire(&claim).await?;
        ensure!(first == second, "a repeated claim got {second:?} after {first:?}");
        let Attempt::Granted { epoch } = first else {
            return Err(Failure(format!("a free key was not granted: {first:?}")));
        };
        ensure!(ours.store.release(&claim.grant(epoch)).await? == LeaseStatus::Held, "the grant was gone");
        theirs.finds_it_free(&claim.key).await?;
    }
    Ok(())
}
