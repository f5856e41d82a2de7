//! Signals that do not come after each end, or not to each who listens.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, GrantRef, Holders, LeaseStatus, LockKey, Notification, Result, Subscription,
};
use tokio::sync::mpsc;

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    IsSilentWhenAllAreForced Tells::after(|step| step != Step::ForceAll),
    IsSilentWhenOneIsForced Tells::after(|step| step != Step::ForceOne),
    IsSilentAfterADowngrade Tells::after(|step| step != Step::Downgrade),
    TellsOneOfThoseWhoListen Tells::one(),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Release,
    ForceAll,
    ForceOne,
    Downgrade,
}

/// Tells who listens by itself, and not as the store does.
struct Tells {
    after: fn(Step) -> bool,
    /// Or only who came first.
    all: bool,
    listen: Mutex<HashMap<LockKey, Vec<mpsc::UnboundedSender<()>>>>,
}

impl Tells {
    fn after(after: fn(Step) -> bool) -> Self {
        Self { after, all: true, listen: Mutex::default() }
    }

    fn one() -> Self {
        Self { all: false, ..Self::after(|_| true) }
    }

    fn tell(&self, key: &LockKey, of: Step) {
        let mut listen = self.listen.lock().unwrap();
        let Some(listen) = listen.get_mut(key).filter(|_| (self.after)(of)) else { return };
        listen.retain(|one| !one.is_closed());
        let told = if self.all { listen.len() } else { 1 };
        for one in &listen[..told.min(listen.len())] {
            let _ = one.send(());
        }
    }
}

#[async_trait]
impl Double for Tells {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let status = client.store.release(grant).await?;
        self.tell(&grant.key, Step::Release);
        Ok(status)
    }

    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.downgrade(writer, claim).await?;
        self.tell(&writer.key, Step::Downgrade);
        Ok(attempt)
    }

    async fn force_release(&self, client: &Client, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        let ended = client.store.force_release(key, only).await?;
        self.tell(key, if only.is_some() { Step::ForceOne } else { Step::ForceAll });
        Ok(ended)
    }

    async fn subscribe(&self, _: &Client, key: &LockKey) -> Result<Box<dyn Subscription>> {
        let (one, told) = mpsc::unbounded_channel();
        self.listen.lock().unwrap().entry(key.clone()).or_default().push(one);
        Ok(Box::new(Told(told)))
    }
}

struct Told(mpsc::UnboundedReceiver<()>);

#[async_trait]
impl Subscription for Told {
    async fn next(&mut self) -> Notification {
        if self.0.recv().await.is_none() { Notification::Ended } else { Notification::Freed }
    }
}
