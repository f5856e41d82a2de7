use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::{Builder, Uuid};

use crate::random::fill;
use crate::{Capabilities, Cursor, Error, ErrorKind, Holders, LockKey, Mode, Page, Result};

/// What the author of a backend writes: one atomic step of the store per method.
///
/// A backend does not wait, retry, keep timers or queue callers, and it has no guards: [`Engine`](crate::Engine) does all of
/// this once for every backend. Each method is called concurrently, from any task, and any of its futures may be dropped
/// at any time.
///
/// # Contract
/// - **Bounded time.** Every method ends by itself within about [`answers_within`](Self::answers_within) (a second, by
///   default), also when the store is silent.
/// - **Atomic steps.** What a method checks and what it writes are one step in the store. The store's clock decides whether a
///   lease has ended; the clock of the client never does.
/// - **Epochs.** Each grant gets a larger epoch than every earlier grant of its key, in the same step, and no epoch is ahead of
///   the store's clock by more than a millisecond: [`FencingToken::next_epoch`](crate::FencingToken::next_epoch) is the rule. A release does not touch the
///   stored epoch.
/// - **Idempotent steps.** The engine may send a claim, release or take-over again with the same owner id after an answer was
///   lost, and the second answer must describe the same grant.
///
/// # Errors
/// A backend classifies the errors of its driver in one function: [`Unavailable`](ErrorKind::Unavailable) if the step was
/// definitely not applied, [`Indeterminate`](ErrorKind::Indeterminate) if the request may have reached the store, and
/// [`Backend`](ErrorKind::Backend) if the store refused for good. The engine adds the operation, the name of the backend and
/// the key.
///
/// # A store with only compare-and-swap
/// Read the entry, compute the new one, and swap it, in a loop inside the method. The limit of the loop is the time, `answers_within`
/// or the `within` of a renewal, and not a number of rounds: a caller that does not wait asks once. When the time is over because
/// others kept changing the entry, nothing was applied by this method: answer [`Unavailable`](ErrorKind::Unavailable). A caller
/// that does not wait gets this error; for one that waits, the engine asks again after a pause with jitter. If the answer to one
/// swap was lost, the method does not know whether it was applied: read again and compare the owner id, or answer
/// [`Indeterminate`](ErrorKind::Indeterminate).
///
/// The clock is read in each step, before the swap. A release that finds nothing swaps the entry nevertheless: a claim of the same
/// owner that is still under way, because its caller gave it up, then fails.
///
/// # What is optional
/// [`Capabilities`] say what a backend claims; each capability that is declined has a reason, which users read.
/// [`take_over`](Self::take_over) is only called where [`Capability::Detach`](crate::Capability::Detach) is claimed, and
/// [`downgrade`](Self::downgrade) where [`Capability::Shared`](crate::Capability::Shared) is.
/// [`inspect`](Self::inspect), [`list`](Self::list) and [`force_release`](Self::force_release) cannot be declined. The local
/// hand-off ([`Capability::LocalHandoff`](crate::Capability::LocalHandoff)) costs a backend nothing: the engine does it without
/// a call. Detaching costs one method, `take_over`; the detach itself sends nothing to the store.
///
/// # Implementing
/// `cargo xtask new-backend NAME --standalone DIR` in a checkout of Leasehold writes a crate whose methods are not written yet,
/// and `CONTRIBUTING.md` ("Add a backend") leads from there to a green suite. The memory backend is the reference, and the
/// conformance suite (feature `conformance`) checks an implementation.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// What this backend claims and what it declines. The answer is always the same. No I/O.
    fn capabilities(&self) -> Capabilities;

    /// The session for which this backend claims keys, where sessions are the owners in the store and may take a key again
    /// ([`Capability::Reentrancy`](crate::Capability::Reentrancy)). `None` by default. No I/O.
    fn session(&self) -> Option<SessionId> {
        None
    }

    /// Grants the key to `claim.owner` if the key is free, or answers that it is not.
    ///
    /// Atomic in the store: the check, the grant with owner id and lease, and the new epoch.
    ///
    /// Idempotent in `(key, owner)`: a second claim of an owner that holds the key answers the same grant and does not prolong
    /// its lease.
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt>;

    /// Prolongs each lease to `ttl` from the moment at which the store executes the step, if the store still has that owner.
    /// A renewal never creates a grant that is gone.
    ///
    /// Where owners are no sessions, a lease is its owner's, whichever process asks: an agent that was started anew goes on with the
    /// leases of the one before.
    ///
    /// The lease is named by its owner. A store with a queue ([`Capability::Queue`](crate::Capability::Queue)) has to compare the epoch
    /// of the grant, too, and every other store may: its waiters keep one owner id until they are granted, and a late claim with that
    /// id may have begun another lease.
    ///
    /// The answer has one entry for each renewal, in their order, also where two are of one grant; the failure of one does not affect
    /// the others. An owner whose lease was ended by force is told so once
    /// ([`Capability::ForceNotice`](crate::Capability::ForceNotice)); a store may forget it when the key is granted again, and when that
    /// lease would have ended. The engine does not use an answer later than `within`: the backend must not wait longer for the store.
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>>;

    /// Frees the key if the store still has that owner, under whatever epoch, or removes that owner from the store queue, or takes
    /// back the mark of a waiting writer that the last claim of that owner left: where writers that wait hold readers back without a
    /// queue, the engine asks for this when the last of them leaves. Where owners are sessions, a store may refuse what an earlier epoch of the session would release. Leaves the stored epoch as it is.
    ///
    /// Idempotent: the release of an owner that the store does not have changes nothing and answers
    /// [`NotHeld`](LeaseStatus::NotHeld). The epoch of the grant is `None` where the answer to its claim did not come.
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus>;

    /// Replaces the owner of a grant by `new_owner`, if the store still has the old one with this epoch: the store's part of an attach.
    /// Only called where [`Capability::Detach`](crate::Capability::Detach) is claimed.
    ///
    /// From then on the old owner can neither renew nor release the grant, and cannot be replaced again. The lease is `ttl`
    /// from now and never shorter than before. Epoch, label and reason stay.
    ///
    /// Atomic in the store: of several concurrent calls one succeeds. Idempotent in `(grant, new_owner)`: a second call answers
    /// [`Held`](LeaseStatus::Held) while `new_owner` holds the grant.
    ///
    /// # Errors
    /// [`Indeterminate`](ErrorKind::Indeterminate) if the answer was lost, or if fewer of several stores than needed have the
    /// new owner: the engine then releases the new owner, and the lease of the old owner ends by itself.
    async fn take_over(&self, grant: &GrantRef, new_owner: OwnerId, ttl: Duration) -> Result<LeaseStatus> {
        let _ = (new_owner, ttl);
        Err(Error::new(ErrorKind::Unsupported, "attach").key(&grant.key))
    }

    /// Turns the exclusive grant `writer` into a shared one of `claim.owner`, with the lease, label and reason of `claim` and a
    /// new epoch, which is larger than every earlier one of the key: the larger of the stored one plus one and the clock, also where that
    /// is one more ahead of the clock than a claim may be: the next claim waits for the clock. Only called where
    /// [`Capability::Shared`](crate::Capability::Shared) is claimed, and never repeated.
    ///
    /// Atomic in the store: no other writer has the key in between, and afterwards the owner of `writer` can neither renew nor
    /// release anything. The answer is [`Attempt::Busy`] if the store does not have the writer, or has it with another epoch.
    ///
    /// # Errors
    /// [`Indeterminate`](ErrorKind::Indeterminate) if the answer was lost, or if the reader may exist beside the writer: the
    /// engine then releases both. Every other error means that there is no reader: the engine then releases the writer.
    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let _ = claim;
        Err(Error::new(ErrorKind::Unsupported, "downgrade").key(&writer.key))
    }

    /// The live grants of the key, with the remaining leases, labels and reasons. No grants: the key is free.
    async fn inspect(&self, key: &LockKey) -> Result<Holders>;

    /// One page of the held keys that start with `prefix`: the first page if `after` is `None`, else the page behind it.
    ///
    /// This cannot be declined: operators look for held keys with it. A store without an index of its keys has to keep one.
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page>;

    /// Frees the key whoever holds it, and answers who held it. Leaves the stored epoch as it is, so that later tokens grow.
    ///
    /// With `only`, ends the grant with this epoch alone, if the key has it at that moment: every other grant, a later one and the
    /// readers beside it, stays as it is. The answer then has this one holder; no holder, if nothing was changed.
    ///
    /// Atomic in the store: the comparison and the release. A look and then a release would free whoever was granted in between.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where the store cannot end that grant alone; nothing was changed then.
    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders>;

    /// The source of this store's notifications. `None`, by default: waiters poll.
    fn notifications(&self) -> Option<&dyn Notifications> {
        None
    }

    /// The largest number of renewals in one call of [`renew`](Self::renew). 250 by default.
    fn renewal_batch(&self) -> usize {
        250
    }

    /// Whether the future of [`release`](Self::release) completes when it is polled once, and needs no runtime: a guard is
    /// then released where it is dropped, also after every runtime has ended. `false` by default.
    fn releases_in_place(&self) -> bool {
        false
    }

    /// The longest time that this backend waits for an answer of the store on an existing connection. One second by default.
    ///
    /// [`Engine::close`](crate::Engine::close) ends within three times this duration, also when the store is silent.
    fn answers_within(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Closes the connections of this backend and ends its background tasks: a backend that has neither needs no other than this, which
    /// does nothing. Steps that begin later fail at once with
    /// [`Closed`](ErrorKind::Closed). Steps that are under way fail at once with the same, or with
    /// [`Indeterminate`](ErrorKind::Indeterminate) if they were sent: the engine waits for none of them any more. Leases go on: they are
    /// their owners', and no connection's.
    ///
    /// The engine calls this once, after the last operation for which it waits. It drops the future after
    /// [`answers_within`](Self::answers_within), and that must end connections and tasks, too.
    async fn close(&self) {}
}

/// A backend that grants [`Mode::Shared`]: its locker is an [`RwLocker`](crate::RwLocker).
///
/// Such a backend also claims [`Capability::Shared`](crate::Capability::Shared) and implements
/// [`downgrade`](Backend::downgrade).
pub trait SharedBackend: Backend {}

/// A request to the store for a key.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct Claim {
    /// The key to lock.
    pub key: LockKey,
    /// The owner id of the claim. It is new for every claim, except for those of a waiter that has, or may have, a position in
    /// the store queue.
    pub owner: OwnerId,
    /// Whether the grant excludes every other grant (exclusive) or only writers (shared, by any number of readers).
    pub mode: Mode,
    /// The length of the lease.
    pub ttl: Duration,
    /// Whether the caller goes on waiting if the key is busy. A store with a queue adds only such claims to it.
    pub waits: bool,
    /// Free text to be stored beside the grant: who holds the key. An empty one may be stored as none.
    pub label: Option<Arc<str>>,
    /// Free text to be stored beside the grant: why the key is held.
    pub reason: Option<Arc<str>>,
    /// Where owners are sessions: the newest epoch of this key that the session has lost in this process. The store neither
    /// joins nor prolongs a lease with this or an older epoch, and answers [`Attempt::HeldBy`] instead.
    pub lost: Option<u64>,
}

impl Claim {
    /// A claim with a new random owner id that does not wait and has no label or reason.
    pub fn new(key: &LockKey, mode: Mode, ttl: Duration) -> Self {
        let (key, owner) = (key.clone(), OwnerId::random());
        Self { key, owner, mode, ttl, waits: false, label: None, reason: None, lost: None }
    }

    /// The grant of this claim under the given epoch.
    pub fn grant(&self, epoch: Option<u64>) -> GrantRef {
        GrantRef { key: self.key.clone(), owner: self.owner, mode: self.mode, epoch }
    }
}

/// The store's answer to a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Attempt {
    /// The key is granted to the owner of the claim.
    Granted {
        /// The epoch of the new lease; `None` where the backend gives no tokens.
        epoch: Option<u64>,
    },
    /// Another owner holds the key, or the store has granted it as often as its clock allows
    /// ([`AHEAD_OF_THE_CLOCK`](Self::AHEAD_OF_THE_CLOCK)).
    Busy {
        /// What is left of the lease that stands in the way, or of one of several, if the store knows it. If that is a millisecond or less, the
        /// engine sends the claim again after it, also for a caller that does not wait, because the key may be free then.
        retry_in: Option<Duration>,
    },
    /// The given session holds the key. Waiters of this process that act for that session are told apart by this from those
    /// for whom the key is [`Busy`](Self::Busy). It may be the session of the claim itself, with a lease that is
    /// [lost](Claim::lost) here.
    HeldBy {
        /// The session that holds the key.
        session: SessionId,
        /// What is left of the lease that stands in the way, if the store knows it.
        retry_in: Option<Duration>,
    },
    /// Another owner holds the key, and the store has added this claim to its queue. A later grant comes as
    /// [`Notification::Granted`], or as the answer to the same claim when it is sent again.
    ///
    /// Only an answer to a claim that [`waits`](Claim::waits). A claim that is sent again keeps its position, also where this
    /// answer was lost. [`Backend::release`] with the owner id gives the position up.
    Queued {
        /// The epoch of the present holder, which is the newest of the key: only a grant with a larger epoch is later than this
        /// answer. `None` if the store does not know it: the engine then takes no notification for a grant, and sends the
        /// claim again.
        epoch_of_holder: Option<u64>,
        /// The largest epoch that a grant out of the queue can have within `lease` of this answer; the store's clock bounds it.
        /// The engine ignores a notification with a larger epoch, because the store cannot have sent it. `None` where
        /// notifications cannot be forged: every epoch counts.
        latest_epoch: Option<u64>,
        /// The claim must be sent again within this time, or its position may be lost.
        retry_in: Duration,
        /// Whether a subscription to the key, also one that begins later, receives a grant of this claim. If not, the claim
        /// has to be sent again once there is a subscription.
        notifies: bool,
        /// The first lease of a grant out of the queue, at most the ttl of the claim. It is short, so that a waiter that died
        /// does not delay the others for long; the engine prolongs it.
        lease: Duration,
    },
}

impl Attempt {
    /// The answer of a store whose counter for the key is a millisecond ahead of the clock: see
    /// [`FencingToken::next_epoch`](crate::FencingToken::next_epoch). Nobody has to hold the key.
    pub const AHEAD_OF_THE_CLOCK: Self = Self::Busy { retry_in: Some(Duration::from_millis(1)) };
}

/// Names a grant in the store: what a renewal or a release is about. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct GrantRef {
    /// The locked key.
    pub key: LockKey,
    /// The owner id that the store must still have as a holder of the key.
    pub owner: OwnerId,
    /// Exclusive or shared.
    pub mode: Mode,
    /// The epoch of the lease; `None` where the backend gives no tokens.
    pub epoch: Option<u64>,
}

/// One entry of a batch of renewals.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct Renewal {
    /// The grant to prolong.
    pub grant: GrantRef,
    /// The new length of the lease, counted from the moment at which the store executes the renewal.
    pub ttl: Duration,
}

/// The store's answer about a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "snake_case"))]
pub enum LeaseStatus {
    /// The store had the owner as the holder, and the step was done.
    Held,
    /// The store does not have the owner: another holds the key, or nobody. Nothing was changed.
    NotHeld,
    /// The store does not have the owner, because an operator released the key by force. Nothing was changed.
    ForceReleased,
}

/// The random id of one lease in the store. A client that knows it can renew and release the grant, so `Debug` shows only its
/// first digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerId(Uuid);

impl OwnerId {
    /// A new owner id from the randomness of the operating system (UUID v4).
    ///
    /// # Panics
    /// If the operating system has no randomness: another could guess an id that was made without.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        fill(&mut bytes);
        Self::from_random(bytes)
    }

    /// The owner id of these random bytes.
    pub(crate) fn from_random(bytes: [u8; 16]) -> Self {
        Self(Builder::from_random_bytes(bytes).into_uuid())
    }

    /// The 16 bytes of the id, for stores with a binary column.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id as 32 lower-case hexadecimal digits, for stores that keep text.
    pub fn to_hex(&self) -> String {
        self.0.simple().to_string()
    }

    /// Reads the digits that [`to_hex`](Self::to_hex) writes. `None` for every other text.
    pub fn parse_hex(hex: &str) -> Option<Self> {
        let is_ours = hex.len() == 32 && !hex.bytes().any(|digit| digit.is_ascii_uppercase());
        Uuid::try_parse(hex).ok().filter(|_| is_ours).map(Self)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerId({}…)", &self.to_hex()[..6])
    }
}

/// Names a session: a digest of its id, so that a client that receives it cannot act as that session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct SessionId(pub u64);

/// The notifications of a store. A lost notification delays a waiter by a poll interval and has no other effect.
#[async_trait]
pub trait Notifications: Send + Sync {
    /// Subscribes to what happens to `key`, also where nobody has ever had it. When this returns, the subscription misses no later
    /// release and no grant out of the store queue, unless the connection breaks: the store has confirmed the subscription.
    ///
    /// # Errors
    /// An error is not final: while a caller waits for the key, the engine polls and subscribes again from time to time.
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>>;
}

/// A subscription to the notifications of one key. Dropping it unsubscribes.
#[async_trait]
pub trait Subscription: Send {
    /// Waits for the next notification about the key: a release or an end by force, and a downgrade, after which readers may come. One may
    /// stand for several. A notification without a reason is harmless; one that comes before the
    /// release can be read costs a poll interval, because the claim that it causes finds the key busy.
    ///
    /// If the connection breaks and the subscription is restored, the answer is [`Freed`](Notification::Freed), once, because a
    /// release may have been missed. If it cannot be restored, the answer is [`Ended`](Notification::Ended). The method
    /// does not end with an error, and it does not wait for ever on a connection that is known to be broken, or was closed.
    ///
    /// # Cancel safety
    /// A notification that was not returned yet is returned by the next call.
    async fn next(&mut self) -> Notification;
}

/// A message of the store about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Notification {
    /// The key may be free.
    Freed,
    /// The store granted the key to a claim in its queue.
    ///
    /// The engine accepts the grant if its epoch is larger than the epoch in the last answer [`Queued`](Attempt::Queued),
    /// because a message may be late and the key granted to another since, and not above the bound in that answer, because
    /// a message may be forged.
    Granted {
        /// The owner id of the claim.
        owner: OwnerId,
        /// The epoch of the grant.
        epoch: Option<u64>,
    },
    /// The subscription has ended, because its connection broke for good. The engine sends the claim again, and subscribes
    /// anew.
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_id_is_a_random_uuid_that_is_written_and_read_as_32_digits() {
        let owner = OwnerId::random();
        let hex = owner.to_hex();
        assert_eq!(hex.len(), 32);
        assert!(hex.as_bytes()[12] == b'4' && b"89ab".contains(&hex.as_bytes()[16]), "{hex} is no UUID v4");
        assert!(OwnerId::parse_hex(&hex) == Some(owner) && OwnerId::random() != owner);
        let fixed = OwnerId::parse_hex("00112233445566778899aabbccddeeff").unwrap();
        assert_eq!((fixed.to_hex().as_str(), fixed.as_bytes()[15]), ("00112233445566778899aabbccddeeff", 0xff));
        assert_eq!(format!("{fixed:?}"), "OwnerId(001122…)");
    }

    #[test]
    fn no_other_text_is_an_owner_id() {
        let digits = "00112233445566778899aabbccddeeff";
        let others = [
            String::new(),
            digits[1..].to_owned(),
            format!("{digits}0"),
            format!("+{}", &digits[1..]),
            digits.to_uppercase(),
            digits.replace('a', "g"),
            "é".repeat(16),
            "00112233-4455-6677-8899-aabbccddeeff".to_owned(),
        ];
        for text in others {
            assert_eq!(OwnerId::parse_hex(&text), None, "{text}");
        }
    }
}
