//! Stores that make a reader of a writer in a way that lets others in, or leaves something of the writer.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, Error, ErrorKind, FencingToken, GrantRef, LeaseStatus, LockKey, Mode, Result,
};

use crate::suite_catches::attach::{Step, StillKnows};
use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, Downgrades};

type Asked = (GrantRef, Claim);

catches! {
    DowngradesWithAGap Downgrades(releases_in_between),
    DowngradesNothing Downgrades(async |_: Client, _: Asked| Err::<Attempt, _>(unsupported())),
    DowngradesToAWriter Downgrades(stays_the_writer),
    DowngradesUnderTheOldNumber Downgrades(same_number),
    LetsTheWriterRenew StillKnows::new(Step::Renew),
    LetsTheWriterRelease StillKnows::new(Step::Release),
    DowngradesForAnHour asks(|claim| claim.ttl = Duration::from_secs(3600)),
    DowngradesForASecond asks(|claim| claim.ttl = Duration::from_secs(1)),
    ForgetsTheReadersTexts asks(|claim| claim.label = None),
    DowngradesAnybody Downgrades(releases_first),
    GivesReadersBesideItOneNumber OneNumber::default(),
    ProlongsTheReaderByItsWriter StillKnows::new(Step::RenewInVain),
    DowngradesAnyNumber Downgrades(any_number),
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "downgrade")
}

const NO: Attempt = Attempt::Busy { retry_in: None };

/// Of who holds the key alone.
async fn epoch_of_writer(client: &Client, key: &LockKey) -> Result<Option<u64>> {
    let held = client.store.inspect(key).await?.holders;
    let writer = held.iter().find(|holder| holder.mode == Mode::Exclusive);
    Ok(writer.and_then(|holder| holder.token).map(FencingToken::epoch))
}

/// Releases, and grants anew to every caller.
async fn releases_first(client: Client, (writer, claim): Asked) -> Result<Attempt> {
    client.store.release(&writer).await?;
    client.store.try_acquire(&claim).await
}

/// Looks whether the writer is there, and then releases and claims, with a moment between the two.
async fn releases_in_between(client: Client, (writer, claim): Asked) -> Result<Attempt> {
    let epoch = epoch_of_writer(&client, &writer.key).await?;
    if epoch.is_none() || epoch != writer.epoch {
        return Ok(NO);
    }
    client.store.release(&writer).await?;
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let attempt = client.store.try_acquire(&claim).await?;
        if matches!(attempt, Attempt::Granted { .. }) {
            return Ok(attempt);
        }
    }
}

/// Changes the owner and nothing else.
async fn stays_the_writer(client: Client, (writer, claim): Asked) -> Result<Attempt> {
    let held = client.store.take_over(&writer, claim.owner, claim.ttl).await?;
    Ok(if held == LeaseStatus::Held { Attempt::Granted { epoch: writer.epoch } } else { NO })
}

/// The reader is told the number of its writer.
async fn same_number(client: Client, (writer, claim): Asked) -> Result<Attempt> {
    let attempt = client.store.downgrade(&writer, &claim).await?;
    let granted = matches!(attempt, Attempt::Granted { .. });
    Ok(if granted { Attempt::Granted { epoch: writer.epoch } } else { attempt })
}

/// Stores something else than what was asked for.
fn asks(change: fn(&mut Claim)) -> impl Double {
    Downgrades(move |client: Client, (writer, mut claim): Asked| async move {
        change(&mut claim);
        client.store.downgrade(&writer, &claim).await
    })
}

/// Compares the owner alone.
async fn any_number(client: Client, (writer, claim): Asked) -> Result<Attempt> {
    let epoch = epoch_of_writer(&client, &writer.key).await?;
    client.store.downgrade(&GrantRef { epoch, ..writer }, &claim).await
}

/// Readers beside one that was the writer have its number.
#[derive(Default)]
struct OneNumber(Mutex<Option<u64>>);

#[async_trait]
impl Double for OneNumber {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.downgrade(writer, claim).await?;
        if let Attempt::Granted { epoch } = attempt {
            *self.0.lock().unwrap() = epoch;
        }
        Ok(attempt)
    }

    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        let number = *self.0.lock().unwrap();
        let granted = matches!(attempt, Attempt::Granted { .. }) && claim.mode == Mode::Shared && number.is_some();
        Ok(if granted { Attempt::Granted { epoch: number } } else { attempt })
    }
}
