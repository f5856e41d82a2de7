//! Servers that answer, and refuse.

use std::cell::RefCell;
use std::time::Duration;

use tokio::time::timeout;

use super::links::hangs;
use crate::conformance::driver::rig::{Fault, Unable};
use crate::conformance::driver::stage::{
    PATIENCE, Stage, Verdict, attempt, comes_after, ensure, eventually, is, is_kept, key, passes_on, patient, take,
    works,
};
use crate::{LockerExt, Wait, connect_within};

pub(super) async fn without_a_connection_left_the_error_says_so(mut stage: Stage) -> Verdict {
    let fault = Fault::NoConnectionLeft;
    let url = stage.server.url();
    let said = stage.server.bring(fault).await?;
    is(&stage.refused(&url).await?, fault.kind(), said)?;
    stage.server.mend(fault).await?;
    let locks = connect_within(Wait::UpTo(PATIENCE), || stage.connect(&url)).await?;
    works(&locks).await
}

pub(super) async fn a_read_only_server_is_waited_for(stage: Stage) -> Verdict {
    is_waited_for(stage, Fault::ReadOnly).await
}

/// What is held can be kept, and given back.
pub(super) async fn a_full_server_is_waited_for(stage: Stage) -> Verdict {
    is_waited_for(stage, Fault::Full).await
}

/// A fault that passes: a try is told so, a waiter goes on when it has passed, and no lock is lost.
async fn is_waited_for(mut stage: Stage, fault: Fault) -> Verdict {
    let (ours, theirs) = (stage.near().await?, stage.near().await?);
    let guard = take(&ours, "held").await?;
    let given_back = take(&ours, "given back").await?;
    let said = stage.server.bring(fault).await?;
    let refused = RefCell::new(None);
    // A session may hear of it a moment later than the operator.
    eventually("a claim is refused", async || {
        *refused.borrow_mut() = attempt(&ours, "other").await.ok().and_then(Result::err);
        refused.borrow().is_some()
    })
    .await?;
    if let Some(error) = refused.take() {
        is(&error, fault.kind(), said)?;
    }
    ensure!(guard.is_held(), "it is lost: {:?}", guard.loss());
    if fault == Fault::Full {
        guard.renew().await?;
        given_back.release().await?;
    }
    let name = key("other")?;
    let options = patient();
    let waiter = ours.acquire(&name, &options);
    let mend = async {
        // By then the waiter has been refused, too.
        tokio::time::sleep(Duration::from_millis(300)).await;
        stage.server.mend(fault).await
    };
    let (granted, ended) = tokio::join!(waiter, mend);
    ended?;
    ensure!(granted?.is_some(), "a waiter was not granted a free key");
    is_kept(&guard, &theirs).await?;
    comes_after(&theirs, "other", None).await?;
    passes_on(guard, &theirs).await
}

pub(super) async fn a_missing_right_is_told_and_not_waited_for(mut stage: Stage) -> Verdict {
    let fault = Fault::MissingRight;
    let url = stage.server.login().await?;
    let (ours, theirs) = (stage.connect(&url).await?, stage.connect(&url).await?);
    let guard = take(&ours, "held").await?;
    let said = stage.server.bring(fault).await?;
    let name = key("other")?;
    // A wait of an hour: whoever waits for a right to come back waits for an operator.
    let waited = timeout(PATIENCE, ours.acquire(&name, &patient().wait(Wait::UpTo(60 * PATIENCE)))).await;
    match waited.map_err(|_| hangs("a claim that the server refuses for good"))? {
        Err(error) => is(&error, fault.kind(), said)?,
        Ok(told) => return Err(Unable::Failed(format!("a claim without a right is answered: {told:?}"))),
    }
    ensure!(guard.is_held(), "it is lost: {:?}", guard.loss());
    stage.server.mend(fault).await?;
    works(&ours).await?;
    is_kept(&guard, &theirs).await?;
    passes_on(guard, &theirs).await
}
