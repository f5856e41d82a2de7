//! Several lockers at one moment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};

use super::context::{AMPLE, TestContext, outlast, past, patient};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Capability, Claim, FencingToken, GrantRef, LockKey, LockOptions, Mode, Wait};

const LEASE: Duration = Duration::from_secs(60);

/// Sends these claims at one moment. Those that were granted; a claim that failed was not.
async fn at_once(clients: &[Arc<TestClient>], key: &LockKey, mode: impl Fn(usize) -> Mode) -> Vec<GrantRef> {
    let claims: Vec<_> = (0..clients.len()).map(|number| Claim::new(key, mode(number), LEASE)).collect();
    let attempts = join_all(clients.iter().zip(&claims).map(|(rival, claim)| rival.store.try_acquire(claim))).await;
    let granted = claims.iter().zip(&attempts).filter_map(|(claim, attempt)| match attempt {
        Ok(Attempt::Granted { epoch }) => Some(claim.grant(*epoch)),
        _ => None,
    });
    let granted = granted.collect();
    for (rival, claim) in clients.iter().zip(&claims) {
        let _ = rival.store.release(&claim.grant(None)).await;
    }
    granted
}

pub(super) async fn c01_of_claims_at_one_moment_one_is_granted(context: TestContext) -> Verdict {
    let (clients, brief) = (context.clients(8, 4).await?, context.brief_ttl());
    let ended: Vec<_> = (0..16).map(|_| context.key()).collect();
    let leases = context.subject.capabilities().has(Capability::Lease);
    if leases {
        // The entry of a lease that is over may still be there.
        let claims = ended.iter().map(|key| clients[0].claims_briefly(key, Mode::Exclusive, brief));
        try_join_all(claims).await?;
        outlast(brief).await;
    }
    for &other in context.modes() {
        let fresh: Vec<_> = (0..10).map(|_| context.key()).collect();
        let keys = ended.iter().filter(|_| leases && other == Mode::Exclusive);
        for (round, key) in fresh.iter().chain(keys).enumerate() {
            let mode = |number: usize| if (number + round).is_multiple_of(2) { Mode::Exclusive } else { other };
            let granted = at_once(&clients, key, mode).await;
            let writers = granted.iter().filter(|grant| grant.mode == Mode::Exclusive).count();
            ensure!(writers == 0 || granted.len() == 1, "{} of {} claims: {granted:?}", granted.len(), clients.len());
        }
    }
    // Of claims that all fail, none is granted twice.
    for key in [&context.key(), &ended[0]] {
        clients[0].take(key, &past(brief)).await?.release().await?;
    }
    Ok(())
}

pub(super) async fn c01_readers_and_writers_of_several_lockers_never_overlap(context: TestContext) -> Verdict {
    /// Long enough for others to come meanwhile.
    const STAY: Duration = Duration::from_millis(3);
    let (writers, readers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (key, options) = (context.key(), LockOptions::new().wait(Wait::UpTo(AMPLE * 2)));
    let mut tasks = tokio::task::JoinSet::new();
    for (number, client) in context.clients(8, 2).await?.into_iter().enumerate() {
        let (key, options) = (key.clone(), options.clone());
        let (writers, readers) = (Arc::clone(&writers), Arc::clone(&readers));
        tasks.spawn(async move {
            let missed = || Failure(format!("{key} was not granted within {:?}", options.wait));
            for round in 0..4 {
                if (number + round).is_multiple_of(3) {
                    let guard = client.take(&key, &options).await?;
                    let others = writers.fetch_add(1, Ordering::SeqCst) + readers.load(Ordering::SeqCst);
                    tokio::time::sleep(STAY).await;
                    let others = others + readers.load(Ordering::SeqCst);
                    writers.fetch_sub(1, Ordering::SeqCst);
                    ensure!(others == 0, "{others} others inside beside a writer");
                    guard.release().await?;
                } else {
                    let guard = client.acquire_read(&key, &options).await?.ok_or_else(missed)?;
                    readers.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(STAY).await;
                    let others = writers.load(Ordering::SeqCst);
                    readers.fetch_sub(1, Ordering::SeqCst);
                    ensure!(others == 0, "{others} writers inside beside a reader");
                    guard.release().await?;
                }
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Ends a grant, if it is there. Whether it was is not asked.
async fn end(rival: &TestClient, grant: &GrantRef, by_force: bool) {
    if by_force {
        let _ = rival.store.steps().force_release(&grant.key, None).await;
    } else {
        let _ = rival.store.release(grant).await;
    }
}

/// Claims whose releases follow without waiting for the answer: the grants come as fast as the store can, and not only
/// once in a round trip. Some are ended by force, with which a store may lose the number that it gave last.
pub(super) async fn c04_tokens_grow_also_within_one_moment_of_the_clock(context: TestContext) -> Verdict {
    const ROUNDS: usize = 8;
    let clients = context.clients(8, 4).await?;
    for &mode in context.modes() {
        let key = context.key();
        let issued = join_all(clients.iter().map(async |rival| {
            let (mut epochs, mut unreleased) = (Vec::new(), String::new());
            for round in 0..ROUNDS {
                let claim = Claim::new(&key, mode, LEASE);
                let grant = claim.grant(None);
                // Not in the last rounds: a key whose releases all fail stays held.
                let end = end(rival, &grant, round % 4 == 1);
                let (attempt, ()) = futures::join!(rival.store.try_acquire(&claim), end);
                if let Ok(Attempt::Granted { epoch }) = attempt {
                    epochs.push(epoch);
                }
                // The release may have overtaken the claim.
                if let Err(error) = rival.store.release(&grant).await {
                    unreleased = format!("\n{}", Failure::from(error).0);
                }
            }
            (epochs, unreleased)
        }))
        .await;
        let (issued, unreleased): (Vec<_>, Vec<_>) = issued.into_iter().unzip();
        for of_one in &issued {
            ensure!(of_one.is_sorted_by(|earlier, later| earlier < later), "one locker got {of_one:?}, {mode}");
        }
        let all: Vec<_> = issued.into_iter().flatten().collect();
        let different: BTreeSet<_> = all.iter().collect();
        ensure!(different.len() == all.len(), "{} numbers for {} grants, {mode}", different.len(), all.len());
        let next = clients[0].take(&key, &patient()).await;
        let next = next.map_err(|Failure(why)| Failure(why + &unreleased.concat()))?;
        let (epoch, last) = (next.fencing_token().map(FencingToken::epoch), all.iter().copied().flatten().max());
        ensure!(epoch > last, "{epoch:?} after {last:?}, {mode}");
        next.release().await?;
    }
    Ok(())
}

/// No writer is granted a key while a reader holds it, so that a present reader was granted it after every writer so far.
pub(super) async fn c04_a_reader_has_a_larger_number_than_a_writer_that_came_while_it_asked(
    context: TestContext,
) -> Verdict {
    const ENOUGH: usize = 10;
    let (clients, key) = (context.clients(3, 1).await?, context.key());
    let (newest, written, over) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let write = async {
        while !over.load(Ordering::SeqCst) {
            let claim = Claim::new(&key, Mode::Exclusive, LEASE);
            if let Attempt::Granted { epoch } = clients[0].store.try_acquire(&claim).await? {
                newest.fetch_max(epoch.unwrap_or(u64::MAX), Ordering::SeqCst);
                written.fetch_add(1, Ordering::SeqCst);
                clients[0].store.release(&claim.grant(epoch)).await?;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok::<_, Failure>(())
    };
    let read = async |rival: &TestClient| {
        let (limit, mut granted) = (rival.clock.now().plus(AMPLE), 0);
        while granted < ENOUGH || written.load(Ordering::SeqCst) < ENOUGH {
            ensure!(rival.clock.now() < limit, "{granted} grants of a reader beside {written:?} of a writer");
            let claim = Claim::new(&key, Mode::Shared, LEASE);
            if let Attempt::Granted { epoch } = rival.store.try_acquire(&claim).await? {
                let before = newest.load(Ordering::SeqCst);
                ensure!(epoch > Some(before), "a reader got {epoch:?} after a writer with {before}");
                rival.store.release(&claim.grant(epoch)).await?;
                granted += 1;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok::<_, Failure>(())
    };
    let readers = async {
        let read = futures::try_join!(read(&clients[1]), read(&clients[2]));
        over.store(true, Ordering::SeqCst);
        read
    };
    let (read, ended) = futures::join!(readers, write);
    ended?;
    read.map(|_| ())
}
