//! Stores that give a detached lock to a new owner in a way that does not keep it from others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{Backend, Claim, FencingToken, GrantRef, LeaseStatus, Mode, OwnerId, Renewal, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, TakeOver, takes_over};

catches! {
    AttachesBySayingSo takes_over(renews_instead),
    AttachesForTwoAtOnce takes_over(looks_first) => c28_of_two_who_attach_at_once_one_has_the_lock,
    AttachesUnderANewNumber takes_over(releases_and_takes),
    AttachesForADay takes_over(for_a_day),
    AttachesUnderAnyNumber takes_over(any_number),
    TakesARepeatForAStranger once_only(),
}

/// Prolongs the lease, and changes no owner.
async fn renews_instead(client: Client, (grant, _, ttl): TakeOver) -> Result<LeaseStatus> {
    client.renew(&[Renewal { grant, ttl }]).await.remove(0)
}

/// Asks who has it, and then writes: two steps.
async fn looks_first(client: Client, (grant, new_owner, ttl): TakeOver) -> Result<LeaseStatus> {
    let held = client.renew(&[Renewal { grant: grant.clone(), ttl: Duration::from_millis(1) }]).await.remove(0)?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    client.store.take_over(&grant, new_owner, ttl).await?;
    Ok(held)
}

/// Frees the key, and takes it again.
async fn releases_and_takes(client: Client, (grant, new_owner, ttl): TakeOver) -> Result<LeaseStatus> {
    let held = client.store.release(&grant).await?;
    if held == LeaseStatus::Held {
        let claim = Claim::new(&grant.key, Mode::Exclusive, ttl);
        client.claim(&Claim { owner: new_owner, ..claim }).await?;
    }
    Ok(held)
}

async fn for_a_day(client: Client, (grant, new_owner, _): TakeOver) -> Result<LeaseStatus> {
    client.store.take_over(&grant, new_owner, Duration::from_secs(86_400)).await
}

/// Believes the text.
async fn any_number(client: Client, (grant, new_owner, ttl): TakeOver) -> Result<LeaseStatus> {
    let token = client.holders(&grant.key).await?.first().and_then(|holder| holder.token);
    let grant = GrantRef { epoch: token.map(FencingToken::epoch), ..grant };
    client.store.take_over(&grant, new_owner, ttl).await
}

/// Asked again with the same new owner, it says no.
fn once_only() -> Double {
    let asked: Arc<Mutex<Vec<OwnerId>>> = Arc::default();
    takes_over(move |client: Client, (grant, new_owner, ttl): TakeOver| {
        let again = asked.lock().unwrap().contains(&new_owner);
        asked.lock().unwrap().push(new_owner);
        async move { if again { Ok(LeaseStatus::NotHeld) } else { client.store.take_over(&grant, new_owner, ttl).await } }
    })
}
