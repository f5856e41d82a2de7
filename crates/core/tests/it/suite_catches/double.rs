//! A backend on the memory of this process in which some steps are replaced.

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use leasehold_core::conformance::Fixture;
use leasehold_core::{
    Attempt, Backend, Capabilities, Claim, Clock, Cursor, GrantRef, Holder, Holders, LeaseStatus, LockKey,
    MemoryBackend, Notifications, OwnerId, Page, Renewal, Result, SharedBackend, Subscription,
};

/// One client of the store.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) store: MemoryBackend,
    /// What this client believes the time to be.
    pub(crate) clock: Clock,
    namespace: String,
    /// What all clients were granted, by key and in this order.
    granted: Arc<Mutex<BTreeMap<LockKey, Vec<GrantRef>>>>,
}

impl Client {
    fn new() -> Self {
        let (store, clock) = (MemoryBackend::new(Clock::system()), Clock::system());
        Self { store, clock, namespace: String::new(), granted: Arc::default() }
    }

    /// Its namespace joined with this key.
    pub(crate) fn flat(&self, joint: &str, key: &LockKey) -> Result<LockKey> {
        LockKey::new(format!("{}{joint}{}", self.namespace, key.as_str()))
    }

    pub(crate) fn granted(&self, key: &LockKey) -> Vec<GrantRef> {
        self.granted.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn was_granted(&self, claim: &Claim) -> bool {
        self.granted(&claim.key).iter().any(|grant| grant.owner == claim.owner)
    }

    /// All keys that ever were granted, in their order.
    pub(crate) fn keys(&self) -> Vec<LockKey> {
        self.granted.lock().unwrap().keys().cloned().collect()
    }

    pub(crate) async fn claim(&self, claim: &Claim) -> Result<Attempt> {
        let attempt = self.store.try_acquire(claim).await?;
        if let Attempt::Granted { epoch } = attempt {
            self.granted.lock().unwrap().entry(claim.key.clone()).or_default().push(claim.grant(epoch));
        }
        Ok(attempt)
    }

    /// The answer to a claim, once its epoch would not be ahead of the clock.
    pub(crate) async fn claim_in_time(&self, claim: &Claim) -> Result<Attempt> {
        loop {
            match self.claim(claim).await {
                Ok(Attempt::AHEAD_OF_THE_CLOCK) => tokio::time::sleep(Duration::from_millis(1)).await,
                answer => return answer,
            }
        }
    }

    pub(crate) async fn renew(&self, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        self.store.renew(renewals, Duration::from_secs(10)).await
    }

    pub(crate) async fn holders(&self, key: &LockKey) -> Result<Vec<Holder>> {
        Ok(self.store.inspect(key).await?.holders)
    }
}

/// An async function in the place of a step, with what it remembers if it does.
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

/// A method of what is remembered.
pub(crate) fn of<T, F, A, Asked, Answer>(it: &Arc<T>, step: F) -> impl Step<Asked, Answer> + use<T, F, A, Asked, Answer>
where
    T: Send + Sync + 'static,
    F: Fn(Arc<T>, Client, Asked) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let it = Arc::clone(it);
    move |client: Client, asked: Asked| step(Arc::clone(&it), client, asked)
}

/// The same of one that waits for nothing.
pub(crate) fn of_sync<T, Asked, Answer>(
    it: &Arc<T>,
    step: fn(&T, &Client, &Asked) -> Answer,
) -> impl Step<Asked, Answer> + use<T, Asked, Answer>
where
    T: Send + Sync + 'static,
    Asked: 'static,
    Answer: Send + 'static,
{
    of(it, move |it: Arc<T>, client: Client, asked: Asked| ready(step(&it, &client, &asked)))
}

type Replaced<Asked, Answer> = Box<dyn Step<Asked, Answer>>;

/// The grant, its new owner and the lease.
pub(crate) type TakeOver = (GrantRef, OwnerId, Duration);
/// The writer, and what it is to become.
pub(crate) type Downgrade = (GrantRef, Claim);
/// The prefix, and the page before.
pub(crate) type Listing = (String, Option<Cursor>);
/// The key, and the epoch of the grant that is meant.
pub(crate) type Force = (LockKey, Option<u64>);

/// Doubles by their steps: what each is asked, what it answers, and how a store that is not broken takes it.
macro_rules! steps {
    ($($step:ident: $asked:ty => $answer:ty, |$client:ident, $given:pat_param| $sound:expr;)*) => {
        /// The steps of a store, of which some are broken. All clients share them.
        pub(crate) struct Double {
            pub(crate) capabilities: fn(Capabilities) -> Capabilities,
            $(pub(crate) $step: Replaced<$asked, $answer>,)*
            pub(crate) signals: bool,
            pub(crate) namespace: fn(&str) -> String,
        }

        impl Double {
            /// Breaks nothing.
            pub(crate) fn sound() -> Self {
                Self {
                    capabilities: |own| own,
                    $($step: Box::new(async |$client: Client, $given: $asked| $sound),)*
                    signals: true,
                    namespace: str::to_owned,
                }
            }
        }

        $(
            /// A double that breaks this step.
            #[allow(dead_code, reason = "each step has one")]
            pub(crate) fn $step(step: impl Step<$asked, $answer>) -> Double {
                Double { $step: Box::new(step), ..Double::sound() }
            }
        )*
    };
}

steps! {
    claims: Claim => Result<Attempt>, |client, claim| client.claim(&claim).await;
    renews: Vec<Renewal> => Vec<Result<LeaseStatus>>, |client, renewals| client.renew(&renewals).await;
    releases: GrantRef => Result<LeaseStatus>, |client, grant| client.store.release(&grant).await;
    takes_over: TakeOver => Result<LeaseStatus>, |client, (old, new, ttl)| client.store.take_over(&old, new, ttl).await;
    downgrades: Downgrade => Result<Attempt>, |client, (writer, claim)| client.store.downgrade(&writer, &claim).await;
    inspects: LockKey => Result<Holders>, |client, key| client.store.inspect(&key).await;
    lists: Listing => Result<Page>, |client, (prefix, after)| client.store.list(&prefix, after.as_ref()).await;
    forces: Force => Result<Holders>, |client, (key, only)| client.store.force_release(&key, only).await;
    subscribes: LockKey => Result<Box<dyn Subscription>>, |client, key| client.store.subscribe(&key).await;
}

/// A double that shows something else than the store does.
pub(crate) fn shows(change: fn(&mut Holders)) -> Double {
    inspects(move |client: Client, key: LockKey| async move {
        let mut seen = client.store.inspect(&key).await?;
        change(&mut seen);
        Ok(seen)
    })
}

/// A double that claims something else than what it is asked for.
pub(crate) fn asks(change: fn(&mut Claim)) -> Double {
    claims(move |client: Client, mut claim: Claim| async move {
        change(&mut claim);
        client.claim(&claim).await
    })
}

/// A double that renews for something else than what it is asked for.
pub(crate) fn renews_for(change: fn(&mut Renewal)) -> Double {
    renews(move |client: Client, mut renewals: Vec<Renewal>| async move {
        renewals.iter_mut().for_each(change);
        client.renew(&renewals).await
    })
}

#[derive(Clone)]
pub(crate) struct Broken {
    client: Client,
    double: Arc<Double>,
}

impl Broken {
    pub(crate) fn new(double: Double) -> Self {
        Self { client: Client::new(), double: Arc::new(double) }
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Broken").field(&self.client.store).finish()
    }
}

#[async_trait]
impl Backend for Broken {
    fn capabilities(&self) -> Capabilities {
        (self.double.capabilities)(self.client.store.capabilities())
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.double.claims.take(&self.client, claim.clone()).await
    }

    async fn renew(&self, renewals: &[Renewal], _within: Duration) -> Vec<Result<LeaseStatus>> {
        self.double.renews.take(&self.client, renewals.to_vec()).await
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.double.releases.take(&self.client, grant.clone()).await
    }

    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        self.double.takes_over.take(&self.client, (grant.clone(), new_owner, ttl)).await
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.double.downgrades.take(&self.client, (writer.clone(), claim.clone())).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.double.inspects.take(&self.client, key.clone()).await
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.double.lists.take(&self.client, (prefix.to_owned(), after.cloned())).await
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.double.forces.take(&self.client, (key.clone(), only)).await
    }

    fn notifications(&self) -> Option<&dyn Notifications> {
        if self.double.signals { Some(self) } else { None }
    }
}

impl SharedBackend for Broken {}

#[async_trait]
impl Notifications for Broken {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        self.double.subscribes.take(&self.client, key.clone()).await
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
        let namespace = (self.double.namespace)(namespace);
        let (store, clock) = (self.client.store.namespace(&namespace), clock.clone());
        Ok(Self { client: Client { store, clock, namespace, ..self.client.clone() }, double: Arc::clone(&self.double) })
    }
}
