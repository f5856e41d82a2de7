//! Elections: the leader holds a lock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};

use super::context::{AMPLE, SHORT, TestContext, patient, soon};
use super::waiting::asks;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{
    Admin, Capabilities, Cursor, Election, ErrorKind, FencingToken, GuardHandle, Holders, LockGuard, LockKey,
    LockOptions, Locker, OrBusy, Page, Result, Wait,
};

/// What a client's program uses, as one value.
#[derive(Clone, Debug)]
struct Locks(Arc<dyn Locker>, Arc<dyn Admin>);

#[async_trait]
impl Locker for Locks {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn acquire_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<LockGuard>> {
        self.0.acquire_or_busy(key, options).await
    }
}

#[async_trait]
impl Admin for Locks {
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.1.inspect(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.1.list(prefix, after).await
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.1.force_release(key).await
    }

    async fn force_release_grant(&self, key: &LockKey, token: FencingToken) -> Result<Holders> {
        self.1.force_release_grant(key, token).await
    }
}

/// With a lease that outlasts every wait of a case: nobody leads because another's lease has ended.
fn election(client: &TestClient, key: &LockKey, candidate: &str) -> Result<Election<Locks>> {
    let locks = Locks(Arc::clone(&client.locker), Arc::clone(&client.admin));
    Ok(Election::new(locks, key, candidate)?.with_options(LockOptions::new().ttl(AMPLE * 6)))
}

/// With a lease that a case waits for.
fn short_lived(client: &TestClient, key: &LockKey, candidate: &str) -> Result<Election<Locks>> {
    Ok(election(client, key, candidate)?.with_options(LockOptions::new().ttl(SHORT)))
}

/// Says that it began, and that it ended when it is dropped.
struct Working(mpsc::UnboundedSender<Told>, &'static str);

#[derive(Debug)]
enum Told {
    Began(&'static str, GuardHandle),
    Stopped(&'static str),
    Failed(String),
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.0.send(Told::Stopped(self.1));
    }
}

/// Works as a candidate for as long as it leads, and never ends by itself.
fn works(
    election: Election<Locks>,
    candidate: &'static str,
    told: &mpsc::UnboundedSender<Told>,
) -> (tokio::task::JoinHandle<Result<Option<()>>>, oneshot::Sender<()>) {
    let (told, (shutdown, ended)) = (told.clone(), oneshot::channel::<()>());
    let work = async move {
        let until = async move { drop(ended.await) };
        let work = |term: GuardHandle| {
            let told = told.clone();
            async move {
                let _ = told.send(Told::Began(candidate, term));
                let _working = Working(told, candidate);
                std::future::pending::<()>().await;
            }
        };
        let ended = election.run_while_leader_until(until, work).await;
        if let Err(error) = &ended {
            let _ = told.send(Told::Failed(error.to_string()));
        }
        ended
    };
    (tokio::spawn(work), shutdown)
}

async fn next(told: &mut mpsc::UnboundedReceiver<Told>) -> Result<Told, Failure> {
    match soon("a candidate begins or stops", told.recv()).await? {
        Some(Told::Failed(why)) => Err(Failure(why)),
        told => told.ok_or_else(|| Failure("all candidates have ended".into())),
    }
}

async fn began(told: &mut mpsc::UnboundedReceiver<Told>, candidate: &str) -> Result<GuardHandle, Failure> {
    match next(told).await? {
        Told::Began(who, term) if who == candidate => Ok(term),
        told => Err(Failure(format!("{told:?} where {candidate} should have begun"))),
    }
}

pub(super) async fn c31_one_candidate_leads_at_a_time_and_terms_grow(context: TestContext) -> Verdict {
    let (key, led) = (context.key(), Arc::new(Mutex::new((0, Vec::new()))));
    let mut tasks = tokio::task::JoinSet::new();
    for client in context.clients(4, 2).await? {
        let (election, led) = (election(&client, &key, "one of them")?, Arc::clone(&led));
        tasks.spawn(async move {
            for _ in 0..4 {
                let leadership = election.campaign().await?;
                let leading = {
                    let mut led = led.lock().unwrap_or_else(PoisonError::into_inner);
                    led.0 += 1;
                    led.1.push(leadership.term());
                    led.0
                };
                // So long that another one who leads as well is seen.
                tokio::time::sleep(Duration::from_millis(2)).await;
                led.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
                ensure!(leading == 1, "{leading} lead at a time");
                leadership.resign().await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = soon("all have led", tasks.join_next()).await? {
        ended??;
    }
    let terms = std::mem::take(&mut led.lock().unwrap_or_else(PoisonError::into_inner).1);
    ensure!(terms.is_sorted_by(|a, b| a < b || a.is_none()), "the terms do not grow: {terms:?}");
    Ok(())
}

pub(super) async fn c31_who_resigns_is_followed_by_a_candidate_that_waits(context: TestContext) -> Verdict {
    let (first, second, key) = (context.client().await?, context.client().await?, context.key());
    let leading = election(&first, &key, "first")?.campaign().await?;
    let term = leading.term();
    let follower = election(&second, &key, "second")?;
    let campaign = tokio::spawn(async move { follower.campaign().await });
    asks(&second, &key, 0).await?;
    ensure!(!campaign.is_finished() && leading.is_leader(), "two lead at a time");
    leading.resign().await?;
    let leading = soon("the second leads", campaign).await???;
    ensure!(leading.term() > term || term.is_none(), "the term {:?} follows {term:?}", leading.term());
    let limited = election(&first, &key, "first")?.with_options(patient().wait(Wait::Never));
    let refused = limited.campaign().await.err().map(|error| error.kind());
    ensure!(refused == Some(ErrorKind::TimedOut), "a campaign that does not wait: {refused:?}");
    let leader = election(&first, &key, "first")?.leader().await?.map(|leader| leader.candidate);
    ensure!(leader.as_deref() == Some("second"), "{leader:?} leads");
    Ok(())
}

pub(super) async fn c31_a_campaign_that_is_cancelled_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let leading = election(&theirs, &key, "the leader")?.campaign().await?;
    let candidate = election(&ours, &key, "one that gives up")?;
    let campaign = tokio::spawn(async move { candidate.campaign().await });
    asks(&ours, &key, 0).await?;
    campaign.abort();
    ensure!(campaign.await.is_err(), "the campaign was not cancelled");
    drop(leading);
    theirs.finds_it_free(&key).await?;
    ours.finds_it_free(&key).await
}

pub(super) async fn c31_an_observer_sees_each_leader_and_that_nobody_leads(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let watched = election(&theirs, &key, "an observer")?;
    let mut seen = watched.observe();
    let mut leader = async || match soon("the observer sees a change", seen.next()).await? {
        Some(leader) => Ok::<_, Failure>(leader?),
        None => Err(Failure("the observer ended".into())),
    };
    let first = leader().await?;
    ensure!(first.is_none(), "{first:?} leads before anybody campaigns");
    for candidate in ["first", "second"] {
        let leading = election(&ours, &key, candidate)?.campaign().await?;
        let seen = leader().await?;
        let seen = seen.ok_or_else(|| Failure(format!("nobody was seen where {candidate} leads")))?;
        ensure!(seen.candidate == candidate && seen.term == leading.term(), "{seen:?}, and not {leading:?}");
        leading.resign().await?;
        let seen = leader().await?;
        ensure!(seen.is_none(), "{seen:?} leads after {candidate} resigned");
    }
    Ok(())
}

pub(super) async fn c31_work_stops_before_the_next_leader_works(context: TestContext) -> Verdict {
    /// On a machine that is busy with something else, a task whose time is over may run late. It does not each time.
    const TRIES: usize = 5;
    for _ in 0..TRIES {
        if stops_before_the_next_works(&context).await? {
            return Ok(());
        }
    }
    Err(Failure(format!("the next leader began before the work of the one before was dropped, {TRIES} times")))
}

/// Whether it stopped in time. If not, its time was over in any case: then it was dropped late.
async fn stops_before_the_next_works(context: &TestContext) -> Result<bool, Failure> {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (tell, mut told) = mpsc::unbounded_channel();
    let (first, first_shutdown) = works(short_lived(&ours, &key, "first")?, "first", &tell);
    let leads = began(&mut told, "first").await?;
    let term = leads.fencing_token();
    let (second, second_shutdown) = works(election(&theirs, &key, "second")?, "second", &tell);
    asks(&theirs, &key, 0).await?;
    // From here on the first has no answer, and its lease ends.
    ours.faults.always(Op::Renew, Fault::Hang);
    ours.faults.always(Op::TryAcquire, Fault::Hang);
    let (in_time, next_term) = match next(&mut told).await? {
        Told::Stopped("first") => (true, began(&mut told, "second").await?.fencing_token()),
        Told::Began("second", next_term) => {
            ensure!(!leads.is_held(), "the second works while the first leads");
            let stops = next(&mut told).await?;
            ensure!(
                matches!(stops, Told::Stopped("first")),
                "{stops:?} where the work of the first should have stopped"
            );
            (false, next_term.fencing_token())
        }
        told => return Err(Failure(format!("the first led, and then came {told:?}"))),
    };
    ensure!(next_term > term || term.is_none(), "{next_term:?} after {term:?}");
    ours.faults.heal();
    drop((first_shutdown, second_shutdown));
    ensure!(first.await??.is_none() && second.await??.is_none(), "work ended that has no end");
    Ok(in_time)
}

pub(super) async fn c31_a_leader_that_was_lost_leads_again_in_a_greater_term(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (tell, mut told) = mpsc::unbounded_channel();
    let (working, shutdown) = works(short_lived(&ours, &key, "it")?, "it", &tell);
    let term = began(&mut told, "it").await?.fencing_token();
    theirs.admin.force_release(&key).await?;
    let stops = next(&mut told).await?;
    ensure!(matches!(stops, Told::Stopped("it")), "{stops:?} after a release by force");
    let again = began(&mut told, "it").await?.fencing_token();
    ensure!(again > term || term.is_none(), "the term {again:?} follows {term:?}");
    drop(shutdown);
    ensure!(working.await??.is_none(), "work ended that has no end");
    Ok(())
}

pub(super) async fn c31_at_a_shutdown_the_work_stops_and_the_next_candidate_leads(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (tell, mut told) = mpsc::unbounded_channel();
    let (first, shutdown) = works(election(&ours, &key, "first")?, "first", &tell);
    began(&mut told, "first").await?;
    let (second, second_shutdown) = works(election(&theirs, &key, "second")?, "second", &tell);
    asks(&theirs, &key, 0).await?;
    drop(shutdown);
    ensure!(soon("the shutdown ends", first).await???.is_none(), "work ended that has no end");
    let stops = next(&mut told).await?;
    ensure!(matches!(stops, Told::Stopped("first")), "{stops:?} at the shutdown of the first");
    began(&mut told, "second").await?;
    drop(second_shutdown);
    soon("the shutdown ends", second).await???;
    ours.finds_it_free(&key).await
}

pub(super) async fn c31_work_that_ends_is_returned_and_its_candidate_resigns(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let election = election(&ours, &key, "it")?;
    let seen = soon("the work ends", election.run_while_leader(|term| async move { term.is_held() })).await??;
    ensure!(seen, "the work did not lead");
    theirs.finds_it_free(&key).await
}

pub(super) async fn c31_a_failing_store_is_not_an_election_without_a_leader(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let election = election(&ours, &key, "it")?;
    ours.faults.always(Op::TryAcquire, Fault::Refuse(ErrorKind::Backend));
    let ended = soon("the campaign ends", election.run_while_leader(|_| async {})).await?;
    ensure!(ended.is_err_and(|error| error.kind() == ErrorKind::Backend), "a store that refuses for good");
    ours.faults.heal();
    ours.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable), 3);
    soon("the fault is ridden out", election.run_while_leader(|_| async {})).await??;
    for candidate in [String::new(), "x".repeat(LockOptions::MAX_TEXT_BYTES + 1)] {
        let refused = Election::new(Arc::clone(&ours.locker), &key, &candidate).err().map(|error| error.kind());
        ensure!(refused == Some(ErrorKind::InvalidOptions), "a candidate of {} bytes: {refused:?}", candidate.len());
    }
    Ok(())
}

pub(super) async fn c31_an_observer_is_told_of_a_failing_store_and_not_that_nobody_leads(
    context: TestContext,
) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let _leading = election(&ours, &key, "it")?.campaign().await?;
    let watched = election(&theirs, &key, "an observer")?;
    let mut seen = watched.observe();
    let mut told = async || {
        let told = soon("the observer is told something", seen.next()).await?;
        Ok::<_, Failure>(told.map(|leader| leader.map(|leader| leader.map(|leader| leader.candidate))))
    };
    let leads = |told: Option<Result<Option<String>>>| matches!(told, Some(Ok(Some(who))) if who == "it");
    ensure!(leads(told().await?), "the leader is not seen");
    for kind in [ErrorKind::Unavailable, ErrorKind::Backend] {
        theirs.faults.always(Op::Inspect, Fault::Refuse(kind));
        let asked = watched.leader().await.map_err(|error| error.kind());
        ensure!(asked == Err(kind), "{kind:?} of the store is the answer {asked:?}");
        let failure = told().await?;
        let seen = failure.as_ref().map(|told| told.as_ref().map_err(crate::Error::kind));
        ensure!(seen == Some(Err(kind)), "{kind:?} of the store was told as {seen:?}");
        theirs.faults.heal();
        if kind == ErrorKind::Unavailable {
            ensure!(leads(told().await?), "the leader is not seen after the fault");
        }
    }
    let after = told().await?;
    ensure!(after.is_none(), "{after:?} was told after a failure for good");
    Ok(())
}
