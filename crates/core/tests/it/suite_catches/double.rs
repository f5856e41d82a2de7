//! A backend on the memory of this process in which one step is replaced.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use leasehold_core::conformance::{Fixture, Shareable, Subject, TestClient};
use leasehold_core::{
    Attempt, Backend, Capabilities, Claim, Clock, Cursor, GrantRef, Holders, LeaseStatus, LocalHandoff, LockKey,
    MemoryBackend, Notifications, OwnerId, Page, Renewal, Result, SharedBackend, Subscription,
};

/// One client of the store.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) store: MemoryBackend,
    /// What this client believes the time to be.
    pub(crate) clock: Clock,
}

impl Client {
    pub(crate) async fn renew(&self, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        self.store.renew(renewals, Duration::from_secs(10)).await
    }

    /// The answer to a claim, once its epoch would not be ahead of the clock.
    pub(crate) async fn claim_in_time(&self, claim: &Claim) -> Result<Attempt> {
        loop {
            match self.store.try_acquire(claim).await {
                Ok(Attempt::AHEAD_OF_THE_CLOCK) => tokio::time::sleep(Duration::from_millis(1)).await,
                answer => return answer,
            }
        }
    }
}

/// What is broken: the steps that are not those of the store. One is shared by all clients, and so may remember.
#[async_trait]
pub(crate) trait Double: Send + Sync + 'static {
    /// What is claimed, where that of the store is `own`.
    fn claims(&self, own: Capabilities) -> Capabilities {
        own
    }

    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        client.store.try_acquire(claim).await
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        client.renew(renewals).await
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        client.store.release(grant).await
    }

    async fn take_over(&self, client: &Client, grant: &GrantRef, new: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        client.store.take_over(grant, new, ttl).await
    }

    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        client.store.downgrade(writer, claim).await
    }

    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        client.store.inspect(key).await
    }

    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        client.store.list(prefix, after).await
    }

    async fn force_release(&self, client: &Client, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        client.store.force_release(key, only).await
    }

    /// Whether the store can be asked for this step at all.
    fn answers(&self, step: &str) -> Result<()> {
        let _ = step;
        Ok(())
    }

    fn signals(&self) -> bool {
        true
    }

    async fn subscribe(&self, client: &Client, key: &LockKey) -> Result<Box<dyn Subscription>> {
        client.store.subscribe(key).await
    }

    fn namespace(&self, namespace: &str) -> String {
        namespace.to_owned()
    }

    /// What the client's program uses.
    fn client(&self, client: TestClient) -> TestClient {
        client
    }
}

/// Breaks nothing.
pub(crate) struct Sound;
impl Double for Sound {}

/// An async function in the place of a step.
pub(crate) trait Step<Asked, Answer>: Send + Sync + 'static {
    fn take(&self, client: &Client, asked: Asked) -> BoxFuture<'static, Answer>;
}

impl<F, A, Asked, Answer> Step<Asked, Answer> for F
where
    F: Fn(Client, Asked) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    fn take(&self, client: &Client, asked: Asked) -> BoxFuture<'static, Answer> {
        Box::pin(self(client.clone(), asked))
    }
}

// Doubles that break one step, and remember nothing.

pub(crate) struct Claims<S>(pub(crate) S);
#[async_trait]
impl<S: Step<Claim, Result<Attempt>>> Double for Claims<S> {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        self.0.take(client, claim.clone()).await
    }
}

pub(crate) struct Renews<S>(pub(crate) S);
#[async_trait]
impl<S: Step<Vec<Renewal>, Vec<Result<LeaseStatus>>>> Double for Renews<S> {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        self.0.take(client, renewals.to_vec()).await
    }
}

pub(crate) struct Releases<S>(pub(crate) S);
#[async_trait]
impl<S: Step<GrantRef, Result<LeaseStatus>>> Double for Releases<S> {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        self.0.take(client, grant.clone()).await
    }
}

/// The grant, its new owner and the lease.
pub(crate) type TakeOver = (GrantRef, OwnerId, Duration);

pub(crate) struct TakesOver<S>(pub(crate) S);
#[async_trait]
impl<S: Step<TakeOver, Result<LeaseStatus>>> Double for TakesOver<S> {
    async fn take_over(&self, client: &Client, grant: &GrantRef, new: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.0.take(client, (grant.clone(), new, ttl)).await
    }
}

pub(crate) struct Downgrades<S>(pub(crate) S);
#[async_trait]
impl<S: Step<(GrantRef, Claim), Result<Attempt>>> Double for Downgrades<S> {
    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.0.take(client, (writer.clone(), claim.clone())).await
    }
}

/// What becomes of the answer of the store.
pub(crate) struct Inspects(pub(crate) fn(&mut Holders));
#[async_trait]
impl Double for Inspects {
    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let mut seen = client.store.inspect(key).await?;
        self.0(&mut seen);
        Ok(seen)
    }
}

pub(crate) struct Lists<S>(pub(crate) S);
#[async_trait]
impl<S: Step<(String, Option<Cursor>), Result<Page>>> Double for Lists<S> {
    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.0.take(client, (prefix.to_owned(), after.cloned())).await
    }
}

pub(crate) struct Forces<S>(pub(crate) S);
#[async_trait]
impl<S: Step<(LockKey, Option<u64>), Result<Holders>>> Double for Forces<S> {
    async fn force_release(&self, client: &Client, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.0.take(client, (key.clone(), only)).await
    }
}

/// A double that claims something else than what it is asked for.
pub(crate) fn asks(change: fn(&mut Claim)) -> impl Double {
    Claims(move |client: Client, mut claim: Claim| async move {
        change(&mut claim);
        client.store.try_acquire(&claim).await
    })
}

/// A double that renews for something else than what it is asked for.
pub(crate) fn renews_for(change: fn(&mut Renewal)) -> impl Double {
    Renews(move |client: Client, mut renewals: Vec<Renewal>| async move {
        renewals.iter_mut().for_each(change);
        client.renew(&renewals).await
    })
}

#[derive(Clone)]
pub(crate) struct Broken {
    client: Client,
    double: Arc<dyn Double>,
}

impl Broken {
    pub(crate) fn new(double: Box<dyn Double>) -> Self {
        let client = Client { store: MemoryBackend::new(Clock::system()), clock: Clock::system() };
        Self { client, double: double.into() }
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Broken").field(&self.client).finish()
    }
}

#[async_trait]
impl Backend for Broken {
    fn capabilities(&self) -> Capabilities {
        self.double.claims(self.client.store.capabilities())
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.double.answers("try_acquire")?;
        self.double.try_acquire(&self.client, claim).await
    }

    async fn renew(&self, renewals: &[Renewal], _within: Duration) -> Vec<Result<LeaseStatus>> {
        match self.double.answers("renew") {
            Ok(()) => self.double.renew(&self.client, renewals).await,
            Err(refused) => renewals.iter().map(|_| Err(refused.clone())).collect(),
        }
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.double.answers("release")?;
        self.double.release(&self.client, grant).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.double.answers("take_over")?;
        self.double.take_over(&self.client, grant, new_owner, ttl).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.double.answers("downgrade")?;
        self.double.downgrade(&self.client, writer, claim).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.double.answers("inspect")?;
        self.double.inspect(&self.client, key).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.double.answers("list")?;
        self.double.list(&self.client, prefix, after).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.double.answers("force_release")?;
        self.double.force_release(&self.client, key, only).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        if self.double.signals() { Some(self) } else { None }
    }
}

impl SharedBackend for Broken {}

#[async_trait]
impl Notifications for Broken {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        self.double.subscribe(&self.client, key).await
    }
}

#[async_trait]
impl Fixture for Broken {
    type Backend = Self;

    fn capabilities(&self) -> Capabilities {
        Backend::capabilities(self)
    }

    async fn connect(&self, namespace: &str) -> Result<Self> {
        self.connect_at(namespace, &Clock::system()).await
    }

    async fn connect_at(&self, namespace: &str, clock: &Clock) -> Result<Self> {
        let store = self.client.store.namespace(&self.double.namespace(namespace));
        Ok(Self { client: Client { store, clock: clock.clone() }, double: Arc::clone(&self.double) })
    }
}

#[async_trait]
impl Subject for Broken {
    fn capabilities(&self) -> Capabilities {
        Backend::capabilities(self)
    }

    async fn available(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    async fn client(&self, namespace: &str, clock: Clock, local_handoff: LocalHandoff) -> Result<TestClient> {
        let client = Shareable(self.clone()).client(namespace, clock, local_handoff).await?;
        Ok(self.double.client(client))
    }

    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}
