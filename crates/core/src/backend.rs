use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Capabilities, Cursor, Error, ErrorKind, Holders, LockKey, Mode, Page, Result};

/// What a backend author writes: one atomic step of the store per method.
///
/// No waiting, no retrying, no timers, no queue and no guard: [`Engine`](crate::Engine) does all that once for every
/// backend. Every method must end by itself in bounded time (a second or so) also when the store is silent.
///
/// # Errors
/// Each backend classifies its driver's errors in one function: `Unavailable` if definitely not applied,
/// `Indeterminate` if the request may have reached the store, `Backend` if the store refused for good. The engine
/// adds operation, backend name and key.
///
/// # Implementing
/// See `CONTRIBUTING.md` ("Add a backend in six steps"); the memory backend is the reference.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// What the store can promise. No I/O.
    fn capabilities(&self) -> Capabilities;

    /// For whom it claims, where the owners in the store are sessions, which take a key again. No I/O.
    fn session(&self) -> Option<SessionId> {
        None
    }

    /// Takes the key if it is free, or says that it is not.
    ///
    /// Atomic in the store: the check, the grant with owner and lease, and the epoch, which is larger than
    /// that of every earlier grant of the key: `max(stored + 1, the store's clock in ms)`. Idempotent in
    /// `(key, owner)`: repeated by the same owner while it holds, it answers the same grant and does not prolong it.
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt>;

    /// Prolongs grants to `ttl` from now, each only if the store still has that owner; never re-creates one.
    ///
    /// In a store with a queue ([`Capability::Queue`](crate::Capability::Queue)) a waiter asks with one owner id until it is
    /// served, and a claim of it that comes late may begin another lease: there the number of the grant is compared too.
    ///
    /// Answers in the order of `renewals`, one for each; the failure of one does not touch the others. An answer later
    /// than `within` is of no use to anybody: nothing is waited for any longer than that, so that a driver still knows
    /// by itself that nobody waits.
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>>;

    /// Frees the key if the store still has that owner, or takes it out of the store's queue. Idempotent. Never
    /// touches the epoch counter.
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus>;

    /// Gives a grant to `new_owner`, if the store still has its owner, under its epoch: from then on the old owner
    /// can neither renew nor release it, nor have it taken over once more. Its lease is `ttl` from now, and never shorter than
    /// before; number, label and reason stay. Only where [`DetachedLock`](crate::Capability::Detach) is claimed.
    ///
    /// Atomic in the store: of several who try at once one gets it. Idempotent in `(grant, new_owner)`: asked again while
    /// that owner holds it, it says so.
    ///
    /// # Errors
    /// If the answer is lost, or some of several stores have the new owner and too few, it is `Indeterminate`: the engine
    /// then releases the new owner, and the lease ends whatever is left of the old one.
    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let _ = (new_owner, ttl);
        Err(Error::new(ErrorKind::Unsupported, "attach").key(&grant.key))
    }

    /// Makes a reader of the writer of `writer`: from then on the key is held by the owner of `claim`, in shared mode, with
    /// the lease, label and reason of `claim`, and under a new number, which is larger than every earlier one of the key.
    /// Only where [`Shared`](crate::Capability::Shared) is claimed.
    ///
    /// No other writer has the key in between. Afterwards the writer's owner can neither renew nor release anything.
    /// [`Attempt::Busy`] if the store does not have the writer, or has it under another number. It is never repeated.
    ///
    /// # Errors
    /// If the answer is lost, or the reader may be there beside the writer, it is `Indeterminate`: the engine then releases
    /// both. Any other error says that there is no reader, and the engine releases the writer.
    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let _ = claim;
        Err(Error::new(ErrorKind::Unsupported, "downgrade").key(&writer.key))
    }

    /// Who holds the key.
    async fn inspect(&self, key: &LockKey) -> Result<Holders>;

    /// One page of the held keys that start with `prefix`.
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page>;

    /// Frees the key whoever holds it, and answers who that was. The epoch counter stays.
    async fn force_release(&self, key: &LockKey) -> Result<Holders>;

    /// Signals of releases, where the store has them.
    fn notifications(&self) -> Option<&dyn Notifications> {
        None
    }

    /// How many renewals go into one call at most.
    fn renewal_batch(&self) -> usize {
        250
    }

    /// Whether [`release`](Self::release) is done when it is polled once, and needs no runtime for that: a guard is then
    /// released where it is dropped, also when every runtime has ended.
    fn releases_in_place(&self) -> bool {
        false
    }

    /// How long an answer of the store is waited for, once there is a connection: the measure of
    /// [`Engine::close`](crate::Engine::close), which must not wait for a store that is silent.
    fn answers_within(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Ends connections and background tasks of its own. Called once, after the last operation that the engine waits
    /// for; what is still under way, or begins later, fails at once. After [`answers_within`](Self::answers_within)
    /// the future is dropped, which has to end them too.
    async fn close(&self) {}
}

/// A backend that grants [`Mode::Shared`]: its locker is an [`RwLocker`](crate::RwLocker).
///
/// It also claims [`Capability::Shared`](crate::Capability::Shared), and its writers become readers by
/// [`downgrade`](Backend::downgrade).
pub trait SharedBackend: Backend {}

/// A request for a key.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What to lock.
    pub key: LockKey,
    /// Who asks: new for every attempt, but for those of a waiter that has, or may have, a place in the store's queue.
    pub owner: OwnerId,
    /// Beside whom.
    pub mode: Mode,
    /// The lease.
    pub ttl: Duration,
    /// Whether the caller goes on waiting if the key is busy; a store may note that down.
    pub waits: bool,
    /// Who, in free text, to be stored beside the grant.
    pub label: Option<Arc<str>>,
    /// Why, in free text, to be stored beside the grant.
    pub reason: Option<Arc<str>>,
    /// The newest epoch of this key that the session has lost here, where owners are sessions: it and all older ones are
    /// not joined, nor prolonged, but are [in the way](Attempt::HeldBy).
    pub lost: Option<u64>,
}

impl Claim {
    /// Of a new owner, who does not wait and leaves no text.
    pub fn new(key: &LockKey, mode: Mode, ttl: Duration) -> Self {
        let (key, owner) = (key.clone(), OwnerId::random());
        Self { key, owner, mode, ttl, waits: false, label: None, reason: None, lost: None }
    }

    /// What it is granted, under this number.
    pub fn grant(&self, epoch: Option<u64>) -> GrantRef {
        GrantRef { key: self.key.clone(), owner: self.owner, mode: self.mode, epoch }
    }
}

/// The store's answer to a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is ours.
    Granted {
        /// The epoch; `None` where the backend gives no tokens.
        epoch: Option<u64>,
    },
    /// Somebody else holds it.
    Busy {
        /// What is left of the lease that stands in the way, if the store knows.
        retry_in: Option<Duration>,
    },
    /// This session holds it: as [`Busy`](Self::Busy), for those of this process who act for it. It is ours where it
    /// holds what it has [lost](Claim::lost) here.
    HeldBy {
        /// Which.
        session: SessionId,
        /// What is left of the lease that stands in the way, if the store knows.
        retry_in: Option<Duration>,
    },
    /// Somebody else holds it, and the store has put this claim into a queue of its own: a later grant comes as
    /// [`Notification::Granted`], or as the answer to the same claim when it is made again.
    ///
    /// Only to a claim that [`waits`](Claim::waits). Made again, the claim finds its place also where this answer was lost.
    /// The place is given up by [`Backend::release`] with the owner id.
    Queued {
        /// The epoch of who holds the key: the newest of the key. Only a grant with a larger one is later than
        /// this answer. `None`, where it is not known: no told grant is taken for later, and the claim is made again.
        epoch_of_holder: Option<u64>,
        /// The largest epoch that a grant out of the queue can have within `lease` of this answer: the store's
        /// clock bounds it. A told grant with a larger one was not told by the store, or is asked for once more in vain.
        /// `None`, where messages cannot be forged: every number counts.
        latest_epoch: Option<u64>,
        /// The claim must be made again within this, or its place may be lost.
        retry_in: Duration,
        /// Whether a grant will be told to a listener, also to one that begins to listen only now. If not, the claim
        /// is to be made again when somebody listens.
        notifies: bool,
        /// What lease a grant out of the queue begins with, at most the one that was asked for: short, so that a
        /// waiter that died does not keep the others for long. The engine prolongs it.
        lease: Duration,
    },
}

/// Which grant a renewal or release is about. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRef {
    /// What is locked.
    pub key: LockKey,
    /// Whom the store must still have as the holder.
    pub owner: OwnerId,
    /// Exclusive or shared.
    pub mode: Mode,
    /// The epoch that came with the grant.
    pub epoch: Option<u64>,
}

/// One entry of a batch of renewals.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The grant to prolong.
    pub grant: GrantRef,
    /// Its lease, counted from when the store executes this.
    pub ttl: Duration,
}

/// What the store says of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    /// It was ours, and the step was done.
    Held,
    /// It is not ours: another's or nobody's. Nothing was changed.
    NotHeld,
    /// It is not ours, because an operator released it by force. Nothing was changed.
    ForceReleased,
}

/// The random id of one epoch: whoever knows it can release the grant, so it is never shown in full.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerId(Uuid);

impl OwnerId {
    /// A new one, from the operating system's randomness (UUID v4).
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The 16 bytes, for stores with a binary column.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The 32 lower-case hexadecimal digits, for stores that keep text.
    pub fn to_hex(&self) -> String {
        self.0.simple().to_string()
    }

    /// From the digits of [`to_hex`](Self::to_hex); `None` if they are not that.
    pub fn parse_hex(hex: &str) -> Option<Self> {
        Uuid::try_parse(hex).ok().filter(|_| hex.len() == 32).map(Self)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerId({}…)", &self.to_hex()[..6])
    }
}

/// Which session: a digest of its id, so that who is told it cannot act as that session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(pub u64);

/// Release signals. They are hints: a lost one costs a poll interval, never liveness.
#[async_trait]
pub trait Notifications: Send + Sync {
    /// Listens for what becomes of `key`. When it returns, no later release and no grant out of the store's queue is
    /// missed, unless the connection breaks. A failure is not for good: while somebody waits it is called again now and then.
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>>;
}

/// One waiter's ear. Dropping it stops listening.
#[async_trait]
pub trait Subscription: Send {
    /// Ends when there is news of the key since the last call. Too often is harmless. Cancel safe.
    ///
    /// After a break that cost signals it says [`Freed`](Notification::Freed), or [`Ended`](Notification::Ended) if it will not hear again.
    async fn next(&mut self) -> Notification;
}

/// What a waiter hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// The key may have become free.
    Freed,
    /// The store's queue granted it. It counts if the number is larger than the one that came with the last answer
    /// [`Queued`](Attempt::Queued), for the message may be late, and the key another's since; and not beyond the bound that
    /// came with it, for the message may be anybody's.
    Granted {
        /// To whom: the owner of the claim in the queue.
        owner: OwnerId,
        /// The epoch.
        epoch: Option<u64>,
    },
    /// Nothing will be heard any more, because the connection broke for good: the engine asks the store, and listens anew.
    Ended,
}
