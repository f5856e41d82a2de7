//! Stores that make a reader of a writer in a way that lets others in, or leaves something of the writer.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, Error, ErrorKind, FencingToken, GrantRef, Holder, LeaseStatus, Mode, OwnerId, Renewal,
    Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    DowngradesWithAGap ReleasesInBetween,
    DowngradesNothing Refuses,
    DowngradesToAWriter StaysTheWriter,
    DowngradesUnderTheOldNumber SameNumber,
    LetsTheWriterRenew StillKnows::new(Step::Renew),
    LetsTheWriterRelease StillKnows::new(Step::Release),
    DowngradesForAnHour Asks(|claim| claim.ttl = Duration::from_secs(3600)),
    DowngradesForASecond Asks(|claim| claim.ttl = Duration::from_secs(1)),
    ForgetsTheReadersTexts Asks(|claim| claim.label = None),
    DowngradesAnybody ReleasesFirst,
    GivesReadersBesideItOneNumber OneNumber::default(),
    ProlongsTheReaderByItsWriter StillKnows::new(Step::RenewInVain),
    DowngradesAnyNumber AnyNumber,
}

/// Releases, and grants anew to every caller.
struct ReleasesFirst;

#[async_trait]
impl Double for ReleasesFirst {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        client.store.release(writer).await?;
        client.store.try_acquire(claim).await
    }
}

/// Looks whether the writer is there, and then releases and claims, with a moment between the two.
struct ReleasesInBetween;

#[async_trait]
impl Double for ReleasesInBetween {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let epoch = |holder: &Holder| holder.token.map(FencingToken::epoch);
        let held = client.store.inspect(&writer.key).await?.holders;
        if !held.iter().any(|holder| holder.mode == Mode::Exclusive && epoch(holder) == writer.epoch) {
            return Ok(Attempt::Busy { retry_in: None });
        }
        client.store.release(writer).await?;
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let attempt = client.store.try_acquire(claim).await?;
            if matches!(attempt, Attempt::Granted { .. }) {
                return Ok(attempt);
            }
        }
    }
}

/// Has shared mode, and not this.
struct Refuses;

#[async_trait]
impl Double for Refuses {
    async fn downgrade(&self, _: &Client, _: &GrantRef, _: &Claim) -> Result<Attempt> {
        Err(Error::new(ErrorKind::Unsupported, "downgrade"))
    }
}

/// Changes the owner and nothing else.
struct StaysTheWriter;

#[async_trait]
impl Double for StaysTheWriter {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let held = client.store.take_over(writer, claim.owner, claim.ttl).await?;
        Ok(if held == LeaseStatus::Held {
            Attempt::Granted { epoch: writer.epoch }
        } else {
            Attempt::Busy { retry_in: None }
        })
    }
}

/// The reader is told the number of its writer.
struct SameNumber;

#[async_trait]
impl Double for SameNumber {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.downgrade(writer, claim).await?;
        let granted = matches!(attempt, Attempt::Granted { .. });
        Ok(if granted { Attempt::Granted { epoch: writer.epoch } } else { attempt })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Renew,
    /// And says that it did not.
    RenewInVain,
    Release,
}

/// Keeps the writer beside the reader, for one step.
struct StillKnows {
    step: Step,
    readers: Mutex<HashMap<OwnerId, GrantRef>>,
}

impl StillKnows {
    fn new(step: Step) -> Self {
        Self { step, readers: Mutex::default() }
    }

    fn now(&self, step: Step, grant: &GrantRef) -> GrantRef {
        let readers = self.readers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let reader = readers.get(&grant.owner).filter(|_| step == self.step);
        reader.unwrap_or(grant).clone()
    }
}

#[async_trait]
impl Double for StillKnows {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.downgrade(writer, claim).await?;
        if let Attempt::Granted { epoch } = attempt {
            let mut readers = self.readers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            readers.insert(writer.owner, claim.grant(epoch));
        }
        Ok(attempt)
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let step = if self.step == Step::RenewInVain { Step::RenewInVain } else { Step::Renew };
        let now = |renewal: &Renewal| Renewal { grant: self.now(step, &renewal.grant), ttl: renewal.ttl };
        let changed: Vec<_> = renewals.iter().map(now).collect();
        let mut answers = client.renew(&changed).await;
        for ((asked, changed), answer) in renewals.iter().zip(&changed).zip(&mut answers) {
            if step == Step::RenewInVain && asked.grant != changed.grant {
                *answer = Ok(LeaseStatus::NotHeld);
            }
        }
        answers
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        client.store.release(&self.now(Step::Release, grant)).await
    }
}

/// Stores something else than what was asked for.
struct Asks(fn(&mut Claim));

#[async_trait]
impl Double for Asks {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let mut claim = claim.clone();
        (self.0)(&mut claim);
        client.store.downgrade(writer, &claim).await
    }
}

/// Compares the owner alone.
struct AnyNumber;

#[async_trait]
impl Double for AnyNumber {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let held = client.store.inspect(&writer.key).await?.holders;
        let epoch = held.iter().find(|holder| holder.mode == Mode::Exclusive).and_then(|holder| holder.token);
        let writer = GrantRef { epoch: epoch.map(FencingToken::epoch), ..writer.clone() };
        client.store.downgrade(&writer, claim).await
    }
}

/// Readers beside one that was the writer have its number.
#[derive(Default)]
struct OneNumber(Mutex<Option<u64>>);

#[async_trait]
impl Double for OneNumber {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.downgrade(writer, claim).await?;
        if let Attempt::Granted { epoch } = attempt {
            *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = epoch;
        }
        Ok(attempt)
    }

    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        let number = *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let granted = matches!(attempt, Attempt::Granted { .. }) && claim.mode == Mode::Shared && number.is_some();
        Ok(if granted { Attempt::Granted { epoch: number } } else { attempt })
    }
}
