use std::time::Duration;

use super::context::{SHORT, TestContext, eventually, once, patient};
use crate::conformance::Op;
use crate::conformance::verdict::{Verdict, ensure};
use crate::{ErrorKind, LockOptions, ReleaseOutcome};

pub(super) async fn c16_renewal_outlives_the_lease(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let began = ours.clock.now();
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    eventually("a renewal is sent", || async { Ok(ours.faults.count(Op::Renew, &key) > 0) }).await?;
    let first = ours.clock.now().since(began);
    ensure!(first >= SHORT / 3, "renewed after {first:?} of {SHORT:?}");
    while ours.clock.now().since(began) < SHORT * 3 {
        theirs.finds_it_held(&key).await?;
        ensure!(guard.is_held(), "lost: {:?}", guard.loss());
        tokio::time::sleep(SHORT / 10).await;
    }
    ensure!(guard.remaining() <= SHORT, "{:?} left of {SHORT:?}", guard.remaining());
    ensure!(guard.release().await? == ReleaseOutcome::Released, "a renewed lock was gone");
    Ok(())
}

pub(super) async fn c19_bad_leases_are_refused_before_anything_is_sent(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let too_short = context.subject.capabilities().shortest_ttl().saturating_sub(Duration::from_millis(1));
    let ttls = [Duration::ZERO, too_short, LockOptions::MAX_TTL + Duration::from_secs(3600), Duration::MAX];
    let too_long = "x".repeat(LockOptions::MAX_TEXT_BYTES + 1);
    let texts = [once().label(too_long.clone()), once().reason(too_long)];
    for options in ttls.map(|ttl| once().ttl(ttl)).into_iter().chain(texts) {
        let kind = ours.acquire(&key, &options).await.err().map(|error| error.kind());
        ensure!(kind == Some(ErrorKind::InvalidOptions), "options with a lease of {:?} gave {kind:?}", options.ttl);
    }
    ensure!(ours.faults.all_steps() == 0, "something was sent");
    Ok(())
}
