use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::patience::Patience;
use crate::random::position;
use crate::{Error, ErrorKind, IntoLockKey, LockGuard, LockKey, LockOptions, Locker, LockerExt, Result, Wait};

/// A number of permits that programs share: at most so many of them work at a time, on any number of machines.
///
/// A permit is a [`LockGuard`] on the key of a **slot**, of which the semaphore has one for each permit. So it has a lease that
/// is renewed, a [loss](crate::Guard::lost), a [fencing token](crate::Guard::fencing_token) of its own slot, and is released when
/// it is dropped. The permit of a holder that died is granted again when its lease is over. Every locker will do; a backend
/// knows nothing of semaphores.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
/// use leasehold_core::{LockOptions, Memory, Semaphore};
///
/// let uploads = Semaphore::new(Memory::new(), "uploads", 3)?;
/// let permit = uploads.acquire().await?; // waits while three others have one
/// println!("slot {} with token {:?}", permit.key(), permit.fencing_token());
///
/// let two_more = uploads.acquire_many(2, &LockOptions::new()).await?;
/// assert!(uploads.try_acquire().await?.is_none());
/// permit.release().await?;
/// assert!(uploads.try_acquire().await?.is_some());
/// # drop(two_more);
/// # Ok(()) }
/// ```
///
/// # Keys
/// The slots of the semaphore `uploads` are the keys `uploads#00`, `uploads#01` and so on, and `uploads#many` is held by the one
/// caller that gathers several permits. [`list`](crate::Admin::list) with the prefix `uploads#` shows who has the permits,
/// [`force_release`](crate::Admin::force_release) of a slot takes one away. Two semaphores never share a slot; a program that
/// locks the key `uploads#00` by itself takes a permit of `uploads`.
///
/// # How many
/// The number of permits is that of this value, and the store does not know it. Of two programs that disagree, the one with the
/// smaller number uses the first slots only: together they have as many permits as the larger number says. So a number that was
/// lowered counts when the last program with the old one has ended.
///
/// A token says which holder of a *slot* came later. Tokens of different slots have no order.
///
/// Over a [session](crate::Capability::Reentrancy), which may take a key again that it holds, an acquisition may be granted a
/// slot that this session holds already: the limit is then on sessions.
///
/// # Order and cost
/// An acquisition first tries each slot once, beginning with a random one: one request where most are free, and as many as there
/// are permits where none is. It then waits for all slots at once, in the wait queue of each, takes what is granted first and
/// leaves the other queues; a permit that was granted at the same moment goes back at once. So whoever waits costs the
/// store as much as so many waiters for a lock, which is why [`MAX_PERMITS`](Self::MAX_PERMITS) is small. Waiters are served in
/// the order in which they began to wait, as far as the backend promises an order for a lock: always within a process, across
/// processes where it claims [`Queue`](crate::Capability::Queue).
///
/// # Cancel safety
/// Dropping the future of any of these methods before it is ready leaves nothing behind: the caller loses its places in the
/// queues, and what it took meanwhile is released in the background.
#[derive(Clone, Debug)]
pub struct Semaphore<L> {
    locker: L,
    key: LockKey,
    slots: Vec<LockKey>,
    turn: LockKey,
}

impl<L: Locker> Semaphore<L> {
    /// The largest number of permits: each waiter waits for every one of them.
    pub const MAX_PERMITS: usize = 32;

    /// The longest key of a semaphore, in bytes. Behind it, there is room for the number of a slot.
    pub const MAX_KEY_BYTES: usize = LockKey::MAX_BYTES - MANY.len();

    /// A semaphore with so many permits. Sends nothing.
    ///
    /// # Errors
    /// [`InvalidKey`](ErrorKind::InvalidKey) for an empty key, or one of more than [`MAX_KEY_BYTES`](Self::MAX_KEY_BYTES);
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) unless there are 1 to [`MAX_PERMITS`](Self::MAX_PERMITS) permits.
    pub fn new(locker: L, key: impl IntoLockKey, permits: usize) -> Result<Self> {
        let key: LockKey = key.into_lock_key()?;
        let refused = |kind, why: String| {
            let error = Error::new(kind, "make a semaphore").with_backend(locker.capabilities().backend());
            Err(error.key(&key).detail(why))
        };
        if key.as_str().len() > Self::MAX_KEY_BYTES {
            let length = key.as_str().len();
            let why = format!("the key has {length} bytes; that of a semaphore takes 1 to {}", Self::MAX_KEY_BYTES);
            return refused(ErrorKind::InvalidKey, why);
        }
        if !(1..=Self::MAX_PERMITS).contains(&permits) {
            let why = format!("a semaphore has 1 to {} permits, not {permits}", Self::MAX_PERMITS);
            return refused(ErrorKind::InvalidOptions, why);
        }
        let slots = (0..permits).map(|slot| LockKey::new(format!("{}#{slot:02}", key.as_str())));
        let slots = slots.collect::<Result<_>>()?;
        let turn = LockKey::new(format!("{}{MANY}", key.as_str()))?;
        Ok(Self { locker, key, slots, turn })
    }

    /// The key that was given.
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// How many permits there are.
    pub fn permits(&self) -> usize {
        self.slots.len()
    }

    /// The keys of the slots: what to inspect, list or free by force.
    pub fn slots(&self) -> &[LockKey] {
        &self.slots
    }

    /// Acquires a permit with the default options: waits without a limit.
    ///
    /// # Errors
    /// As for [`Locker::acquire_or_busy`], and [`TimedOut`](ErrorKind::TimedOut) where the defaults of the locker limit the wait.
    pub async fn acquire(&self) -> Result<LockGuard> {
        let permit = self.acquire_with(&LockOptions::new()).await?;
        permit.ok_or_else(|| self.error(ErrorKind::TimedOut, "acquire a permit"))
    }

    /// Asks once for a permit, without waiting. `Ok(None)`: all are taken.
    ///
    /// # Errors
    /// As for [`Locker::acquire_or_busy`]: also if only one of the slots could not be asked, and the others are taken.
    pub async fn try_acquire(&self) -> Result<Option<LockGuard>> {
        self.acquire_with(&LockOptions::new().wait(Wait::Never)).await
    }

    /// Acquires a permit, waiting as long as `options` say. `Ok(None)`: all were taken for the whole wait.
    ///
    /// # Errors
    /// As for [`Locker::acquire_or_busy`]: also if only one of the slots could not be asked until the wait was over, and the others were
    /// taken.
    pub async fn acquire_with(&self, options: &LockOptions) -> Result<Option<LockGuard>> {
        let patience = Patience::of(options);
        self.one_beside(&[], options, &patience).await
    }

    /// Acquires `count` permits, all or none, within one wait. `Ok(None)`: there were not enough of them for the whole wait, or
    /// another caller was gathering permits.
    ///
    /// One caller at a time gathers permits, so that no two wait for what the other has; those who want a single permit are
    /// served beside it. While it waits, it keeps what it has gathered, which nobody else can use. A program that already holds
    /// permits of the same semaphore can still wait for itself. A limit of the wait that is a default of the locker counts for each
    /// request anew; one that `options` name counts for all together.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions), before anything is sent, unless 1 to [`permits`](Self::permits) are asked for;
    /// [`Lost`](ErrorKind::Lost) if a permit was lost while waiting for a later one; else as for
    /// [`acquire_with`](Self::acquire_with). After an error none is kept.
    pub async fn acquire_many(&self, count: usize, options: &LockOptions) -> Result<Option<Vec<LockGuard>>> {
        if !(1..=self.permits()).contains(&count) {
            let why = format!("there are {} permits, and {count} were asked for", self.permits());
            return Err(self.error(ErrorKind::InvalidOptions, "acquire permits").detail(why));
        }
        let patience = Patience::of(options);
        if count == 1 {
            return Ok(self.one_beside(&[], options, &patience).await?.map(|permit| vec![permit]));
        }
        // Renewed, and without a limit on the time of holding, whatever is asked for the permits, or a default of the locker.
        let turn_options = options.clone().renew(true).max_hold(Duration::MAX);
        let Some(turn) = self.locker.acquire(&self.turn, &turn_options).await? else { return Ok(None) };
        tokio::select! {
            biased;
            // Another gathers now: to go on could be to wait for each other.
            reason = turn.lost() => Err(self.error(ErrorKind::Lost(reason), "acquire permits")),
            gathered = self.gather(count, options, &patience) => {
                if matches!(gathered, Ok(Some(_))) {
                    // Else who asks next without waiting, when this caller has its permits, could find the turn taken.
                    let _ = turn.release().await;
                }
                gathered
            }
        }
    }

    async fn gather(&self, count: usize, options: &LockOptions, patience: &Patience) -> Result<Option<Vec<LockGuard>>> {
        let mut permits = Vec::with_capacity(count);
        while permits.len() < count {
            match self.one_beside(&permits, options, patience).await? {
                Some(permit) => permits.push(permit),
                None => return Ok(None),
            }
        }
        match permits.iter().find_map(LockGuard::loss) {
            Some(reason) => Err(self.error(ErrorKind::Lost(reason), "acquire permits")),
            None => Ok(Some(permits)),
        }
    }

    /// A permit other than those: of the first slot that is found free, or else of the first that is granted.
    async fn one_beside(
        &self,
        held: &[LockGuard],
        options: &LockOptions,
        patience: &Patience,
    ) -> Result<Option<LockGuard>> {
        let is_held = |slot: &LockKey| held.iter().any(|permit| permit.key() == slot);
        let mut slots: Vec<_> = self.slots.iter().filter(|slot| !is_held(slot)).collect();
        // Else all who come would ask for the first slot, and all but one in vain.
        let first = position(slots.len());
        slots.rotate_left(first);
        let once = options.clone().wait(Wait::Never);
        let (mut unasked, mut asked) = (None, 0);
        // Not at once: a slot that is taken and given back is one that another's try finds taken.
        while asked < slots.len() && unasked.is_none() {
            let slot = slots[asked];
            asked += 1;
            let unanswered = || self.error(ErrorKind::Indeterminate, "acquire a permit");
            match patience.within(unanswered, self.locker.acquire(slot, &once)).await {
                Ok(None) => {}
                Err(error) if error.is_transient() => unasked = Some(error),
                answer => return answer,
            }
        }
        match patience.left() {
            // One after the other, slots that do not answer would take the limit of a command each. The others may be on other servers.
            Wait::Never if !patience.has_limit() => match self.first_granted(&slots[asked..], &once).await {
                Ok(None) => unasked.map_or(Ok(None), Err),
                answer => answer,
            },
            Wait::Never => unasked.map_or(Ok(None), Err),
            Wait::UpTo(left) => self.first_granted(&slots, &options.clone().wait(Wait::UpTo(left))).await,
            Wait::Forever => self.first_granted(&slots, options).await,
        }
    }

    /// Waits for all slots at once. Dropping the other futures leaves their queues, and gives back what they were granted.
    async fn first_granted(&self, slots: &[&LockKey], options: &LockOptions) -> Result<Option<LockGuard>> {
        let mut silent = None;
        let mut waits: FuturesUnordered<_> = slots.iter().map(|slot| self.locker.acquire(slot, options)).collect();
        while let Some(answer) = waits.next().await {
            match answer {
                Ok(None) => {}
                Err(error) if error.is_transient() => silent = Some(error),
                answer => return answer,
            }
        }
        silent.map_or(Ok(None), Err)
    }

    fn error(&self, kind: ErrorKind, operation: &'static str) -> Error {
        Error::new(kind, operation).with_backend(self.locker.capabilities().backend()).key(&self.key)
    }
}

/// What is behind the key of a semaphore in the key of the turn to gather several permits. No slot has it.
const MANY: &str = "#many";
