//! Clients that were closed, and those whose runtime ended.

use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Builder;

use super::context::{TestContext, soon};
use crate::conformance::direct::WITHIN;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Capability, Claim, Error, ErrorKind, LockOptions, Mode, Notification, Renewal, Wait};

/// A ttl longer than any case.
const LONG: Duration = Duration::from_secs(600);

pub(super) async fn c06_after_closing_no_step_is_carried_out(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let capabilities = context.subject.capabilities();
    let wakes = capabilities.has(Capability::Wakeup);
    let heard = if wakes { Some(ours.store.subscribe(&key).await?) } else { None };
    let kept = ours.claims(&context.key(), Mode::Exclusive, LONG).await?;
    let under_way = join_all((0..32).map(|_| ours.store.steps().inspect(&key)));
    let (under_way, ()) = soon("closing", async { futures::join!(under_way, ours.store.close()) }).await?;
    for error in under_way.into_iter().filter_map(Result::err) {
        let is_told = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Indeterminate);
        ensure!(is_told, "a step that was under way was told {error:?}");
    }
    let claim = Claim::new(&key, Mode::Exclusive, LONG);
    let claimed = soon("a claim after closing ends", ours.store.try_acquire(&claim)).await?;
    if claimed.is_ok() && !capabilities.has(Capability::CrossHost) {
        // A store that is in this process, or in files, needs no closing.
        return Ok(());
    }
    let steps = ours.store.steps();
    let renewals = [(); 2].map(|()| Renewal { grant: kept.clone(), ttl: LONG });
    let asked = async {
        let mut told = vec![
            ("a claim", claimed.err()),
            ("a look", steps.inspect(&key).await.err()),
            ("a listing", steps.list(key.as_str(), None).await.err()),
            ("a forced release", steps.force_release(&kept.key, None).await.err()),
            ("a release", steps.release(&kept).await.err()),
        ];
        told.extend(steps.renew(&renewals, WITHIN).await.into_iter().map(|answer| ("a renewal", answer.err())));
        if wakes {
            told.push(("a subscription", ours.store.subscribe(&key).await.err()));
        }
        if capabilities.has(Capability::Detach) {
            told.push(("a take-over", steps.take_over(&kept, claim.owner, LONG).await.err()));
        }
        if capabilities.has(Capability::Shared) {
            let reads = Claim::new(&kept.key, Mode::Shared, LONG);
            told.push(("a downgrade", steps.downgrade(&kept, &reads).await.err()));
        }
        told
    };
    let told = soon("steps after closing end", asked).await?;
    for (step, error) in &told {
        let kind = error.as_ref().map(Error::kind);
        ensure!(kind == Some(ErrorKind::Closed), "{step} after closing was told {error:?}");
    }
    let renewed = told.iter().filter(|(step, _)| *step == "a renewal").count();
    ensure!(renewed == renewals.len(), "two renewals after closing had {renewed} answers");
    if let Some(mut heard) = heard {
        // And does not begin again.
        for _ in 0..2 {
            while soon("a subscription ends with its client", heard.next()).await? != Notification::Ended {}
        }
    }
    // The lease of a closed client goes on.
    if capabilities.has(Capability::Lease) {
        theirs.finds_it_held(&kept.key).await?;
    }
    theirs.finds_it_free(&key).await
}

pub(super) async fn c12_a_locker_whose_runtime_ended_serves_or_says_that_it_cannot(context: TestContext) -> Verdict {
    let connecting = context.clone();
    let connected = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(connecting.client())?;
        drop(runtime);
        Ok::<_, Failure>(client)
    });
    let (ours, key) = (connected.await??, context.key());
    // Connections end with their runtime.
    let connects = context.subject.capabilities().has(Capability::CrossHost);
    // Without a limit: what would be tried again would be waited for until the case is given up.
    let answer = ours.acquire(&key, &LockOptions::new().wait(Wait::Forever)).await;
    let advises = |error: &Error| error.kind() == ErrorKind::Closed && error.to_string().contains("connect again on");
    let says_so = connects && answer.as_ref().is_err_and(advises);
    ensure!(says_so || matches!(answer, Ok(Some(_))), "a free key, asked for on another runtime: {answer:?}");
    Ok(())
}
