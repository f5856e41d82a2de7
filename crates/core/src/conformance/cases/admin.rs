use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::context::{AMPLE, MARGIN, SHORT, TestContext, outlast, patient, soon};
use super::token::token;
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Capability, Claim, Cursor, FencingToken, Holder, LeaseStatus, LockKey, LossReason, Mode};

/// Everything that a listing shows, page by page.
pub(super) async fn listed(client: &TestClient, prefix: &str) -> Result<BTreeMap<LockKey, Vec<Holder>>, Failure> {
    listed_after(client, prefix, None).await
}

async fn listed_after(
    client: &TestClient,
    prefix: &str,
    mut after: Option<Cursor>,
) -> Result<BTreeMap<LockKey, Vec<Holder>>, Failure> {
    let mut keys = BTreeMap::new();
    // Far more pages than keys: a cursor that does not move on must not loop for ever.
    for _ in 0..1_000 {
        let page = client.admin.list(prefix, after.as_ref()).await?;
        for holders in page.keys {
            ensure!(!holders.holders.is_empty(), "{:?} is listed and held by nobody", holders.key);
            keys.insert(holders.key, holders.holders);
        }
        after = page.next;
        if after.is_none() {
            return Ok(keys);
        }
    }
    Err(Failure("the listing does not end".into()))
}

pub(super) async fn c25_inspect_shows_the_holder(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let lease = Duration::from_secs(30);
    theirs.sees_nobody(&key).await?;
    let guard = ours.take(&key, &patient().ttl(lease).label("the tester").reason("a check")).await?;
    let seen = theirs.admin.inspect(&key).await?;
    let [holder] = &seen.holders[..] else { return Err(Failure(format!("{seen:?}"))) };
    ensure!(holder.mode == Mode::Exclusive, "{holder:?}");
    ensure!(holder.label.as_deref() == Some("the tester") && holder.reason.as_deref() == Some("a check"), "{holder:?}");
    ensure!(holder.token == guard.fencing_token(), "{holder:?} and {:?}", guard.fencing_token());
    let leased = context.subject.capabilities().has(Capability::Lease);
    let left = holder.remaining.is_some_and(|left| !left.is_zero() && left <= lease);
    ensure!(left || !leased, "{:?} left of {lease:?}", holder.remaining);
    guard.release().await?;
    theirs.sees_nobody(&key).await
}

pub(super) async fn c25_list_pages_through_held_keys(context: TestContext) -> Verdict {
    /// The order of bytes, of letters and of a language each puts them elsewhere, wherever a page ends.
    const BEGINNINGS: &str = "aBcDeFgHiJkLmNoPqRsTuVwXyZ/É\u{e000}\u{ffff}😀\u{10ffff}";
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let stem = context.key();
    // Of keys with several holders, the end of a page could have a part.
    let shared = context.subject.capabilities().has(Capability::Shared);
    let (mode, each) = if shared { (Mode::Shared, 3) } else { (Mode::Exclusive, 1) };
    let keys = (0..5).flat_map(|number| BEGINNINGS.chars().map(move |first| (first, number)));
    // What a cursor is made of may be in a key.
    let keys = keys.map(|(first, number)| LockKey::new(format!("{stem}:|,;/=&% \0\n{first}{number}")));
    let keys: BTreeSet<_> = keys.collect::<Result<_, _>>()?;
    let mut grants = Vec::new();
    for some in keys.iter().collect::<Vec<_>>().chunks(20).flat_map(|some| std::iter::repeat_n(some, each)) {
        let claims = some.iter().map(|key| ours.claims(key, mode, AMPLE * 3));
        grants.extend(futures::future::try_join_all(claims).await?);
    }
    let seen = listed(&theirs, stem.as_str()).await?;
    let missing: Vec<_> = keys.iter().filter(|key| seen.get(*key).is_none_or(|held| held.len() != each)).collect();
    ensure!(missing.is_empty(), "each has {each} holders, and these keys are not listed so: {missing:?}");
    ensure!(seen.len() == keys.len(), "{} keys listed, {} held", seen.len(), keys.len());

    // What ends between two pages moves nothing that stays.
    let page = theirs.admin.list(stem.as_str(), None).await?;
    let ends: BTreeSet<_> = page.keys.iter().take(10).chain(page.keys.last()).map(|held| held.key.clone()).collect();
    let (end, stay): (Vec<_>, Vec<_>) = grants.into_iter().partition(|grant| ends.contains(&grant.key));
    for grant in end {
        ours.store.release(&grant).await?;
    }
    // Nor does what happens to it, nor another key.
    for (number, grant) in stay.iter().enumerate() {
        match number % 4 {
            0 => drop(ours.store.renew(grant, AMPLE * 2).await?),
            1 => drop(ours.store.renew(grant, AMPLE * 4).await?),
            2 if shared => drop(ours.claims(&grant.key, mode, AMPLE * 2).await?),
            _ => {}
        }
    }
    for (number, key) in keys.iter().enumerate().filter(|(number, _)| number % 20 == 0) {
        ours.claims(&LockKey::new(format!("{key}{number}"))?, mode, AMPLE).await?;
    }
    let mut shown: BTreeSet<_> = page.keys.into_iter().map(|held| held.key).collect();
    if page.next.is_some() {
        // Nor does another listing of one client.
        theirs.admin.list(&format!("{stem}/"), None).await?;
        shown.extend(listed_after(&theirs, stem.as_str(), page.next).await?.into_keys());
    }
    let missing: Vec<_> = keys.iter().filter(|key| !ends.contains(*key) && !shown.contains(*key)).collect();
    ensure!(missing.is_empty(), "held throughout, and not listed when others ended between two pages: {missing:?}");
    for grant in stay {
        ours.store.release(&grant).await?;
    }
    Ok(())
}

/// A page that is cut before its live grants are looked for may have none, and yet not be the last one.
pub(super) async fn c25_list_goes_on_behind_what_has_ended(context: TestContext) -> Verdict {
    /// More than two pages of most stores.
    const ENDED: usize = 250;
    /// At a time.
    const MANY: usize = 50;
    let (ours, theirs, brief) = (context.client().await?, context.client().await?, context.brief_ttl());
    let stem = context.key();
    let named = |ending: String| LockKey::new(format!("{stem}/{ending}"));
    let first = ours.take(&named("a".into())?, &patient()).await?;
    let ended: Vec<_> = (0..ENDED).map(|number| named(format!("b{number}"))).collect::<Result<_, _>>()?;
    for some in ended.chunks(MANY) {
        let claims = some.iter().map(|key| ours.claims_briefly(key, Mode::Exclusive, brief));
        futures::future::try_join_all(claims).await?;
    }
    let last = ours.take(&named("c".into())?, &patient()).await?;
    outlast(brief).await;
    let seen = listed(&theirs, stem.as_str()).await?;
    ensure!(seen.keys().eq([first.key(), last.key()]), "of two that are held, {:?} are listed", seen.keys());
    Ok(())
}

pub(super) async fn c25_list_takes_the_prefix_literally(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    let stem = context.key();
    let mut guards = Vec::new();
    // Behind the last of these characters there is no other, or none that a text may have.
    for ending in
        ["%a", "_a", "*a", "?a", "[x]a", "\\a", "{a", "ba", "\u{7f}a", "\u{d7ff}a", "\u{ffff}a", "\u{10ffff}a"]
    {
        guards.push(ours.take(&LockKey::new(format!("{stem}{ending}"))?, &patient()).await?);
    }
    for guard in &guards {
        for prefix in [guard.key().as_str(), guard.key().as_str().trim_end_matches('a')] {
            let seen = listed(&ours, prefix).await?;
            ensure!(seen.keys().eq([guard.key()]), "{prefix:?} lists {seen:?}");
        }
    }
    let all = listed(&ours, stem.as_str()).await?;
    ensure!(all.len() == guards.len(), "{stem} lists {all:?}");
    Ok(())
}

pub(super) async fn c25_force_release_frees_the_key_and_tells_the_holder(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    // With this lease, the first renewal comes when a third of it is over.
    let lease = SHORT * 12;
    let slow = ours.claims(&context.key(), Mode::Exclusive, SHORT).await?;
    ours.store.renew(&slow, lease).await?;
    theirs.store.steps().force_release(&slow.key, None).await?;
    let forced = ours.clock.now();
    let guard = ours.take(&key, &patient().ttl(SHORT).label("the tester")).await?;
    let taken = theirs.admin.force_release(&key).await?;
    ensure!(taken.holders.len() == 1 && taken.holders[0].label.as_deref() == Some("the tester"), "{taken:?}");
    theirs.sees_nobody(&key).await?;
    let reason = soon("the holder is told", guard.lost()).await?;
    let notices = context.subject.capabilities().has(Capability::ForceNotice);
    let is_told = reason == LossReason::ForceReleased || (reason == LossReason::Stolen && !notices);
    ensure!(is_told, "{reason:?}");
    let successor = theirs.take(&key, &patient()).await?;
    drop(guard);
    successor.renew().await?;
    let nobody = theirs.admin.force_release(&context.key()).await?;
    ensure!(nobody.holders.is_empty(), "a free key was taken from {nobody:?}");
    tokio::time::sleep((lease / 3).saturating_sub(ours.clock.now().since(forced))).await;
    let told = ours.store.renew(&slow, lease).await?;
    ensure!(context.tells_of_force(told), "the first renewal after the release by force was told {told:?}");
    // However long ago: what another has by now is not its own.
    theirs.claims(&slow.key, Mode::Exclusive, lease).await?;
    let told = ours.store.renew(&slow, lease).await?;
    ensure!(told != LeaseStatus::Held, "a lease that was ended by force was told as held, though another has the key");
    Ok(())
}

/// What was handed off inside of a process is the same lease, with another token of the same epoch.
pub(super) async fn c25_a_grant_that_is_over_is_not_released_by_its_token(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let first = ours.take(&key, &patient()).await?;
    let over = token(&first)?;
    first.release().await?;
    let second = ours.take(&key, &patient().ttl(SHORT)).await?;
    let present = token(&second)?;
    for other in [over, FencingToken::from(0), FencingToken::from(u64::MAX)] {
        let taken = theirs.admin.force_release_grant(&key, other).await?.holders;
        ensure!(taken.is_empty(), "by the token {other} the grant {present} was taken: {taken:?}");
    }
    second.renew().await?;
    let handed_off = FencingToken::from(present.get() | 1);
    let taken = theirs.admin.force_release_grant(&key, handed_off).await?.holders;
    let epochs: Vec<_> = taken.iter().map(|holder| holder.token.map(FencingToken::epoch)).collect();
    ensure!(epochs == [Some(present.epoch())], "by the token {handed_off} was taken {taken:?}");
    let reason = soon("the holder is told", second.lost()).await?;
    ensure!(matches!(reason, LossReason::ForceReleased | LossReason::Stolen), "{reason:?}");
    theirs.finds_it_free(&key).await
}

pub(super) async fn c25_who_waits_in_the_store_is_counted(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let waiters = async || Ok::<_, Failure>(theirs.admin.inspect(&key).await?.waiters);
    ensure!(waiters().await? == Some(0), "nobody waits for a free key: {:?}", waiters().await?);
    let guard = ours.take(&key, &patient()).await?;
    let mut claims = Vec::new();
    for count in 0..=2 {
        let (inspected, page) = (waiters().await?, theirs.admin.list(key.as_str(), None).await?);
        ensure!(inspected == Some(count), "{count} wait, and {inspected:?} are counted");
        // A store that scans may need another page.
        let listed = page.keys.first().map(|held| held.waiters);
        ensure!(listed.is_none_or(|listed| listed == Some(count)), "{count} wait, and {listed:?} are listed");
        let claim = Claim { waits: true, ..Claim::new(&key, Mode::Exclusive, AMPLE * 3) };
        let attempt = theirs.store.try_acquire(&claim).await?;
        ensure!(matches!(attempt, Attempt::Queued { .. }), "a claim that waits was told {attempt:?}");
        claims.push(claim);
        let told = tokio::time::timeout(MARGIN, guard.wanted()).await;
        ensure!(told.is_ok(), "the holder was not told that {} wait", count + 1);
    }
    theirs.store.release(&claims[1].grant(None)).await?;
    ensure!(waiters().await? == Some(2), "one of three gave up, and {:?} are counted", waiters().await?);
    Ok(())
}
