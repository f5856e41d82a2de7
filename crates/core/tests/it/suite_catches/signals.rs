//! Signals that do not come after each end, or not to each who listens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use leasehold_core::{Attempt, Backend, GrantRef, Holders, LeaseStatus, LockKey, Notification, Result, Subscription};
use tokio::sync::mpsc;

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, Downgrade, Force, of, of_sync};

catches! {
    IsSilentWhenAllAreForced tells(|step| step != Step::ForceAll, true),
    IsSilentWhenOneIsForced tells(|step| step != Step::ForceOne, true),
    IsSilentAfterADowngrade tells(|step| step != Step::Downgrade, true),
    TellsOneOfThoseWhoListen tells(|_| true, false),
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

fn tells(after: fn(Step) -> bool, all: bool) -> Double {
    let it = Arc::new(Tells { after, all, listen: Mutex::default() });
    Double {
        releases: Box::new(of(&it, Tells::releases)),
        downgrades: Box::new(of(&it, Tells::downgrades)),
        forces: Box::new(of(&it, Tells::forces)),
        subscribes: Box::new(of_sync(&it, Tells::subscribes)),
        ..Double::sound()
    }
}

impl Tells {
    fn tell(&self, key: &LockKey, of: Step) {
        let mut listen = self.listen.lock().unwrap();
        let Some(listen) = listen.get_mut(key).filter(|_| (self.after)(of)) else { return };
        listen.retain(|one| !one.is_closed());
        let told = if self.all { listen.len() } else { 1 };
        for one in &listen[..told.min(listen.len())] {
            let _ = one.send(());
        }
    }

    async fn releases(self: Arc<Self>, client: Client, grant: GrantRef) -> Result<LeaseStatus> {
        let status = client.store.release(&grant).await?;
        self.tell(&grant.key, Step::Release);
        Ok(status)
    }

    async fn downgrades(self: Arc<Self>, client: Client, (writer, claim): Downgrade) -> Result<Attempt> {
        let attempt = client.store.downgrade(&writer, &claim).await?;
        self.tell(&writer.key, Step::Downgrade);
        Ok(attempt)
    }

    async fn forces(self: Arc<Self>, client: Client, (key, only): Force) -> Result<Holders> {
        let ended = client.store.force_release(&key, only).await?;
        self.tell(&key, if only.is_some() { Step::ForceOne } else { Step::ForceAll });
        Ok(ended)
    }

    #[allow(clippy::unnecessary_wraps, reason = "it is a step")]
    fn subscribes(&self, _: &Client, key: &LockKey) -> Result<Box<dyn Subscription>> {
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
