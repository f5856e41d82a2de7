//! Requests that are carried out, and whose answers are lost, or that are carried out too late.

use std::time::Duration;

use tokio::time::sleep;

use crate::conformance::driver::proxy::{Effects, Proxy};
use crate::conformance::driver::rig::{Able, Unable};
use crate::conformance::driver::stage::{
    PATIENCE, Stage, Verdict, attempt, comes_after, ensure, eventually, is_kept, is_transient, key, once, passes_on,
    take, works,
};
use crate::{Admin, Error, ErrorKind, LockGuard, LockerExt, Locks};

pub(super) async fn a_claim_whose_answer_is_lost_is_given_back(stage: Stage) -> Verdict {
    without_its_answer(stage, Proxy::drop_next_reply, |effects| effects.dropped_replies).await
}

pub(super) async fn a_claim_whose_answer_is_cut_in_the_middle_is_given_back(stage: Stage) -> Verdict {
    without_its_answer(stage, Proxy::tear_next_reply, |effects| effects.torn_replies).await
}

async fn without_its_answer(stage: Stage, fault: fn(&Proxy), hits: fn(Effects) -> u64) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let (mut token, mut rounds, mut claims, mut may_be_late) = (None, 0, 0, false);
    while claims < 10 {
        works(&ours).await?;
        // Until a pool has its connection back, so that the claim needs no new one.
        sleep(Duration::from_millis(50)).await;
        rounds += 1;
        let was_unknown = std::mem::take(&mut may_be_late);
        fault(&stage.proxy);
        match attempt(&ours, "k").await? {
            // It was sent again, on another connection.
            Ok(Some(guard)) => {
                is_kept(&guard, &theirs).await?;
                claims += 1;
            }
            // What the claim before it left on its broken connection reached the server only now, and is given back.
            Ok(None) if was_unknown => {}
            Ok(None) => return Err(Unable::Failed("a claim found itself to be in the way".to_owned())),
            Err(error) => {
                is_transient(&error)?;
                may_be_late = true;
                // Else it was the answer to a login. Told of a claim that was carried out, nothing would give it back.
                claims += u64::from(error.kind() == ErrorKind::Indeterminate);
            }
        }
        ensure!(hits(stage.proxy.effects()) == rounds, "no answer was hit: {:?}", stage.proxy.effects());
        ensure!(rounds < 50, "of {rounds} claims {claims} were hit");
        let next = take(&theirs, "k").await?;
        ensure!(next.fencing_token() > token, "{next:?} after {token:?}");
        token = next.fencing_token();
        next.release().await?;
    }
    Ok(())
}

pub(super) async fn a_release_whose_answer_is_lost_spares_the_next_holder(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    for round in 1..=5 {
        works(&ours).await?;
        let guard = take(&ours, "k").await?;
        let token = guard.fencing_token();
        stage.proxy.drop_next_reply();
        let released = guard.release().await;
        ensure!(stage.proxy.dropped_replies() == round, "no answer was hit: {released:?}");
        // It says so, or it was asked again and found that the key was released.
        if let Err(error) = &released {
            is_transient(error)?;
        }
        let next = take(&theirs, "k").await?;
        ensure!(next.fencing_token() > token, "{next:?} after {token:?}");
        works(&ours).await?;
        is_kept(&next, &stage.near().await?).await?;
        next.release().await?;
    }
    ours.close().await;
    Ok(())
}

/// A claim whose request is held on its way, and whose connection breaks.
async fn is_held_up(stage: &Stage, ours: &Locks) -> Able<Result<Option<LockGuard>, Error>> {
    works(ours).await?;
    stage.proxy.hold_requests();
    let asked = tokio::spawn({
        let (ours, name) = (ours.clone(), key("k")?);
        async move { ours.acquire(&name, &once()).await }
    });
    eventually("the request is on its way", async || stage.proxy.held() > 0).await?;
    stage.proxy.cut();
    let answer = tokio::time::timeout(PATIENCE, asked).await.map_err(|_| super::links::hangs("a try"))??;
    ensure!(!matches!(answer, Ok(None)), "a claim found itself to be in the way");
    if let Err(error) = &answer {
        ensure!(error.kind() == ErrorKind::Indeterminate, "{error}");
        is_transient(error)?;
    }
    Ok(answer)
}

pub(super) async fn a_claim_that_is_carried_out_too_late_keeps_the_key_from_nobody(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let answer = is_held_up(&stage, &ours).await?;
    // Sent again, and granted: then it is given back, and the late one comes after the release.
    let token = answer.ok().flatten().and_then(|guard| guard.fencing_token());
    works(&ours).await?;
    stage.proxy.release();
    comes_after(&theirs, "k", token).await?;
    // The late claim may reach the server only now, and must go away again.
    for _ in 0..5 {
        works(&ours).await?;
        comes_after(&theirs, "k", token).await?;
    }
    Ok(())
}

pub(super) async fn a_claim_that_comes_too_late_does_not_disturb_the_next_holder(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    drop(is_held_up(&stage, &ours).await?);
    let guard = take(&theirs, "k").await?;
    stage.proxy.release();
    let other = stage.near().await?;
    for _ in 0..20 {
        works(&ours).await?;
        let seen = theirs.inspect(guard.key()).await?.holders;
        ensure!(seen.len() == 1 && seen[0].token == guard.fencing_token(), "{seen:?} for {guard:?}");
    }
    is_kept(&guard, &other).await?;
    passes_on(guard, &other).await
}
