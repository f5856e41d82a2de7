//! Stores that make a reader of a writer in a way that lets others in, or leaves something of the writer.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, FencingToken, LeaseStatus, LockKey, Mode, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, Downgrade, downgrades};

catches! {
    DowngradesWithAGap downgrades(releases_in_between),
    DowngradesToAWriter downgrades(stays_the_writer),
    DowngradesUnderTheOldNumber downgrades(same_number),
    DowngradesForASecond asks(|claim| claim.ttl = Duration::from_secs(1)),
    ForgetsTheReadersTexts asks(|claim| claim.label = None),
    DowngradesAnybody downgrades(releases_first),
}

const NO: Attempt = Attempt::Busy { retry_in: None };

/// Of who holds the key alone.
async fn epoch_of_writer(client: &Client, key: &LockKey) -> Result<Option<u64>> {
    let held = client.holders(key).await?;
    let writer = held.iter().find(|holder| holder.mode == Mode::Exclusive);
    Ok(writer.and_then(|holder| holder.token).map(FencingToken::epoch))
}

/// Releases, and grants anew to every caller.
async fn releases_first(client: Client, (writer, claim): Downgrade) -> Result<Attempt> {
    client.store.release(&writer).await?;
    client.claim(&claim).await
}

/// Looks whether the writer is there, and then releases and claims, with a moment between the two.
async fn releases_in_between(client: Client, (writer, claim): Downgrade) -> Result<Attempt> {
    let epoch = epoch_of_writer(&client, &writer.key).await?;
    if epoch.is_none() || epoch != writer.epoch {
        return Ok(NO);
    }
    client.store.release(&writer).await?;
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let attempt = client.claim(&claim).await?;
        if matches!(attempt, Attempt::Granted { .. }) {
            return Ok(attempt);
        }
    }
}

/// Changes the owner and nothing else.
async fn stays_the_writer(client: Client, (writer, claim): Downgrade) -> Result<Attempt> {
    let held = client.store.take_over(&writer, claim.owner, claim.ttl).await?;
    Ok(if held == LeaseStatus::Held { Attempt::Granted { epoch: writer.epoch } } else { NO })
}

/// The reader is told the number of its writer.
async fn same_number(client: Client, (writer, claim): Downgrade) -> Result<Attempt> {
    let attempt = client.store.downgrade(&writer, &claim).await?;
    let granted = matches!(attempt, Attempt::Granted { .. });
    Ok(if granted { Attempt::Granted { epoch: writer.epoch } } else { attempt })
}

/// Stores something else than what was asked for.
fn asks(change: fn(&mut Claim)) -> Double {
    downgrades(move |client: Client, (writer, mut claim): Downgrade| async move {
        change(&mut claim);
        client.store.downgrade(&writer, &claim).await
    })
}
