//! A backend on the memory of this process in which one step is replaced.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
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
}

/// What is broken: the steps that are not those of the store. One is shared by all clients, and so may remember.
#[async_trait]
pub(crate) trait Double: Send + Sync + 'static {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        client.store.try_acquire(claim).await
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        client.renew(renewals).await
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        client.store.release(grant).await
    }

    async fn take_over(
        &self,
        client: &Client,
        grant: &GrantRef,
        new_owner: OwnerId,
        ttl: Duration,
    ) -> Result<LeaseStatus> {
        client.store.take_over(grant, new_owner, ttl).await
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
        self.client.store.capabilities()
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
        self.client.store.capabilities()
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
        self.client.store.capabilities()
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
