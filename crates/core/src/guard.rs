use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tracing::{Instrument, Span};

use crate::engine::{GuardInner, WeakGuardState};
use crate::{
    Error, ErrorKind, Exclusive, FencingToken, GrantRef, GuardMode, LocalHandoff, LockKey, LockOptions, LossReason,
    Mode, OwnerId, ReleaseOutcome, Result, Shared,
};

/// Proof of a grant, as long as [`is_held`](Self::is_held) says so. Dropping it releases.
///
/// The lease behind it is renewed in the background (unless switched off), so a guard lives as long as its owner
/// keeps it and the store answers. When it does not, the guard finds out first: its deadline runs on a local clock
/// from before the request left, less a margin, so `is_held` turns false and [`lost`](Self::lost) resolves *before*
/// the store may give the key to somebody else.
///
/// What no lock can do is stop a program that is paused between the check and the write. For that, send the
/// [`fencing_token`](Self::fencing_token) along and let the resource refuse smaller ones.
#[must_use = "the lock is released when the guard is dropped; bind it to a name (not `_`) for as long as you need it"]
pub struct Guard<M: GuardMode = Exclusive> {
    inner: GuardInner,
    /// Open as long as the guard exists; only where a subscriber wants it, so that others do not pay for it.
    span: Option<Box<Span>>,
    /// The defaults of the locker for a downgrade, where it has others than the engine.
    defaults: Option<Box<LockOptions>>,
    mode: PhantomData<fn() -> M>,
}

/// A guard that excludes every other grant of its key. `Guard` alone is the same.
pub type LockGuard = Guard<Exclusive>;

/// A guard that excludes writers, beside any number of other readers.
pub type ReadGuard = Guard<Shared>;

impl<M: GuardMode> Guard<M> {
    pub(crate) fn new(inner: GuardInner) -> Self {
        let state = inner.state();
        let (backend, key, token) =
            (state.backend(), state.key().as_str(), state.grant().fencing_token().map(FencingToken::get));
        let span = tracing::debug_span!("hold", backend, key, mode = %M::MODE, token);
        let span = (!span.is_disabled()).then(|| Box::new(span));
        Self { inner, span, defaults: None, mode: PhantomData }
    }

    /// Gives the guard defaults for a downgrade. Those that it has count for what these leave open.
    pub(crate) fn with_defaults(self, outer: &LockOptions) -> Self {
        let outer = outer.clone();
        let defaults = match &self.defaults {
            Some(inner) => outer.or(inner),
            None => outer,
        };
        Self { defaults: Some(Box::new(defaults)), ..self }
    }

    /// What is locked.
    pub fn key(&self) -> &LockKey {
        self.inner.state().key()
    }

    /// The number that a resource can tell stale holders by. `None` only on a backend that does not claim
    /// [`Fencing`](crate::Capability::Fencing).
    ///
    /// Taken with the grant and never read again: reading it later could return a successor's.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.inner.state().grant().fencing_token()
    }

    /// Whether the lease is certainly still ours: a comparison of two clock readings, no I/O.
    ///
    /// True means that it was when the clock was read. The process can be stopped right after.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.inner.state().is_held()
    }

    /// How long it stays ours without another renewal; zero once it is lost, [`Duration::MAX`] on a backend without
    /// a lease.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.inner.state().remaining()
    }

    /// Why the guard was lost, if it was.
    #[must_use]
    pub fn loss(&self) -> Option<LossReason> {
        self.inner.state().loss()
    }

    /// Resolves with the reason when the grant is lost, at the deadline at the latest, also while the store is
    /// silent. Never resolves for a guard that is released or dropped before it is lost: to select against the work. A task that
    /// only watches the guard awaits [`ended`](Self::ended).
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Safe; it can be called again, also after the loss.
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + 'static {
        let handle = self.handle();
        async move { handle.lost().await }
    }

    /// Resolves when the guard is lost, with the reason, or when it is released, dropped, detached or downgraded before, with
    /// `None`. Keeps neither the lock nor its connection.
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Safe; it can be called again, also after the end.
    pub fn ended(&self) -> impl Future<Output = Option<LossReason>> + Send + 'static {
        let handle = self.handle();
        async move { handle.ended().await }
    }

    /// Resolves when somebody waits for the key: in this process, or, where the store has a queue
    /// ([`Queue`](crate::Capability::Queue)), anywhere; the store is asked once a second. Never resolves where nobody knows, or once
    /// the guard has ended: to select against work that can be put off.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{LockerExt, Memory};
    ///
    /// let locks = Memory::new();
    /// let guard = locks.lock("index").await?;
    /// let next = tokio::spawn(async move { locks.lock("index").await });
    /// guard.wanted().await;
    /// guard.release().await?;
    /// next.await.unwrap()?.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Safe; it can be called again.
    pub fn wanted(&self) -> impl Future<Output = ()> + Send + 'static {
        let handle = self.handle();
        async move { handle.wanted().await }
    }

    /// Renews the lease now, in addition to the renewals in the background.
    ///
    /// # Errors
    /// [`Lost`](ErrorKind::Lost) if it is not ours any more. Any other says that the lease was not prolonged as far as is
    /// known here, and the guard still holds until its deadline: a transient one if the store gave no answer,
    /// [`Backend`](ErrorKind::Backend) if it refused. The background goes on trying; if that is in vain, the guard is lost
    /// as [`Unreachable`](LossReason::Unreachable).
    ///
    /// # Cancel safety
    /// Dropping the future may or may not renew; the deadline is moved only by an answer that was seen.
    pub async fn renew(&self) -> Result<()> {
        self.inner.renew().await
    }

    /// Releases the lock, and says how that ended.
    ///
    /// # Errors
    /// A transient error when the outcome is unknown. The release is then repeated in the background for as long as
    /// the lease could last; it compares the owner, so it can never free a successor.
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime, on a backend whose driver needs one. A guard that is dropped never does.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the release.
    pub async fn release(self) -> Result<ReleaseOutcome> {
        let Self { inner, span, .. } = self;
        let state = inner.state();
        let (backend, key, token) =
            (state.backend(), state.key().as_str(), state.grant().fencing_token().map(FencingToken::get));
        let release = || tracing::debug_span!("release", backend, key, token);
        let release = span.as_ref().map_or_else(release, |hold| hold.in_scope(release));
        inner.release().instrument(release).await
    }
}

impl<M: GuardMode> Guard<M> {
    /// A handle on this guard for code that only has to know of the lock: it answers what the guard answers, and
    /// neither keeps nor releases the lock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use leasehold_core::{LockerExt, Memory};
    ///
    /// let guard = Memory::new().lock("ledger").await?;
    /// let handle = guard.handle();
    /// assert_eq!(handle.fencing_token(), guard.fencing_token());
    /// drop(guard);
    /// assert!(!handle.is_held());
    /// # Ok(()) }
    /// ```
    pub fn handle(&self) -> GuardHandle {
        GuardHandle(self.inner.state().downgrade())
    }
}

impl LockGuard {
    /// Gives up this guard without releasing the key, for [`attach`](crate::Locker::attach) in another process.
    ///
    /// Until then nobody renews the lease, so carry it over quickly. It can be attached once, here or elsewhere; once more, and
    /// with the same token, where the store lost the first time in a fail-over (see "Under faults" in the backend's README).
    ///
    /// # Errors
    /// [`Lost`](ErrorKind::Lost) if it was lost before; [`Unsupported`](ErrorKind::Unsupported) on a backend that does not claim
    /// [`Detach`](crate::Capability::Detach), where nobody could attach it. Whichever it is, this guard is over, as if it was dropped.
    #[must_use = "nobody renews or releases the grant until it is attached"]
    pub fn detach(self) -> Result<DetachedLock> {
        let grant = self.inner.state().grant();
        let (GrantRef { key, owner, epoch, .. }, handoffs) = (grant.grant(), grant.number());
        self.inner.detach()?;
        Ok(DetachedLock { key, owner, epoch, handoffs })
    }

    /// Goes on as a reader, by one step of the store: no other writer has the key in between.
    ///
    /// The reader has a lease, a label and a reason as `options` say, and a token of its own, which is larger than this
    /// guard's. For what is not chosen, the defaults of the locker count, and not what this guard has. The wait of `options` is of no matter. There is no way back: two readers that waited to become the writer
    /// would wait for each other.
    ///
    /// # Errors
    /// [`Lost`](ErrorKind::Lost) if it was lost before; [`Unsupported`](ErrorKind::Unsupported) on a backend that does not
    /// claim [`Shared`](crate::Capability::Shared); else as for [`acquire_or_busy`](crate::Locker::acquire_or_busy). Whichever it is, this
    /// guard is over, and what it held is released.
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock, at once or when its lease is over.
    pub async fn downgrade(self, options: &LockOptions) -> Result<ReadGuard> {
        let Self { inner, defaults, .. } = self;
        let options = options.clone();
        let options = defaults.iter().fold(options, |options, defaults| options.or(defaults));
        Ok(Guard::new(inner.downgraded(&options).await?))
    }
}

impl<M: GuardMode> fmt::Debug for Guard<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", self.key())
            .field("mode", &M::MODE)
            .field("token", &self.fencing_token())
            .field("held", &self.is_held())
            .finish_non_exhaustive()
    }
}

/// A handle on a [`Guard`] that somebody else keeps: it tells whether the lock is held, and holds neither the lock nor its
/// connection.
///
/// Cloning is cheap. After the guard was released, dropped or detached, [`is_held`](Self::is_held) is false, and
/// [`loss`](Self::loss) is the loss that came before that, if one did.
#[derive(Clone)]
pub struct GuardHandle(WeakGuardState);

impl GuardHandle {
    /// Resolves when no release of the key is under way, or is repeated, in this process.
    pub(crate) fn settled(self) -> impl Future<Output = ()> + Send + 'static {
        self.0.settled()
    }

    /// What is locked.
    pub fn key(&self) -> &LockKey {
        self.0.grant().key()
    }

    /// Whether the guard is exclusive or shared.
    pub fn mode(&self) -> Mode {
        self.0.grant().mode()
    }

    /// The token of the guard: see [`Guard::fencing_token`].
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.0.grant().fencing_token()
    }

    /// Whether the guard exists and its lease is certainly valid: see [`Guard::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.state().is_some_and(|state| state.is_held())
    }

    /// How long the lease lasts without another renewal: see [`Guard::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.0.state().map_or(Duration::ZERO, |state| state.remaining())
    }

    /// Why the guard was lost, if it was.
    #[must_use]
    pub fn loss(&self) -> Option<LossReason> {
        self.0.loss()
    }

    /// Resolves with the reason when the guard is lost, also after its owner dropped it on that loss, and never if it is
    /// released or dropped before: see [`Guard::lost`].
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Safe; it can be called again, also after the loss.
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + 'static {
        let ended = self.ended();
        async move {
            match ended.await {
                Some(reason) => reason,
                None => std::future::pending().await,
            }
        }
    }

    /// Resolves when somebody waits for the key: see [`Guard::wanted`].
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Safe; it can be called again.
    pub fn wanted(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.clone().wanted()
    }

    /// Resolves when the guard has ended, with the reason if it was lost: see [`Guard::ended`].
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    ///
    /// # Cancel safety
    /// Safe; it can be called again, also after the end.
    pub fn ended(&self) -> impl Future<Output = Option<LossReason>> + Send + 'static {
        self.0.clone().ended()
    }
}

impl fmt::Debug for GuardHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardHandle")
            .field("key", self.key())
            .field("mode", &self.mode())
            .field("token", &self.fencing_token())
            .field("held", &self.is_held())
            .finish_non_exhaustive()
    }
}

/// An exclusive grant on its way to another process.
///
/// [`expose`](Self::expose) turns it into text and `parse` reads it back. Whoever has the text can release the
/// lock, so treat it as a secret; `Debug` does not show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachedLock {
    key: LockKey,
    owner: OwnerId,
    epoch: Option<u64>,
    handoffs: u16,
}

impl DetachedLock {
    /// What is locked.
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// The text to carry over, without spaces. One that was changed on its way is refused.
    pub fn expose(&self) -> String {
        let epoch = self.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
        let key = utf8_percent_encode(self.key.as_str(), NON_ALPHANUMERIC);
        let text = format!("{PREFIX}{}:{epoch}:{}:{key}", self.owner.to_hex(), self.handoffs);
        format!("{text}:{:016x}", checksum(&text))
    }

    pub(crate) fn handoffs(&self) -> u16 {
        self.handoffs
    }

    pub(crate) fn to_grant(&self) -> GrantRef {
        GrantRef { key: self.key.clone(), owner: self.owner, mode: Mode::Exclusive, epoch: self.epoch }
    }

    fn read(text: &str) -> Option<Self> {
        let (text, check) = text.rsplit_once(':')?;
        if check != format!("{:016x}", checksum(text)) {
            return None;
        }
        let mut parts = text.strip_prefix(PREFIX)?.splitn(4, ':');
        let owner = OwnerId::parse_hex(parts.next()?)?;
        let epoch = match parts.next()? {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        let handoffs = parts.next()?.parse().ok().filter(|count| *count <= LocalHandoff::HARD_LIMIT)?;
        let key = percent_decode_str(parts.next()?).decode_utf8().ok()?;
        Some(Self { key: LockKey::new(&*key).ok()?, owner, epoch, handoffs })
    }
}

/// Names the version of the text: in another one, its numbers may say other tokens.
const PREFIX: &str = "leasehold2:";

fn is_of_another_version(text: &str) -> bool {
    let version = text.strip_prefix("leasehold").and_then(|rest| rest.split_once(':'));
    version.is_some_and(|(number, _)| number.parse::<u32>().is_ok()) && !text.starts_with(PREFIX)
}

/// FNV-1a. The store compares owner and epoch, and nobody the count: one that was changed could give a token twice.
///
/// It is against what happens to a text on its way. Whoever has one can act for its holder, and needs no other text for that.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl FromStr for DetachedLock {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(|| {
            let why = if is_of_another_version(text) {
                "this text is from another version of Leasehold; detach the lock with this version"
            } else {
                "this is not the text of a detached lock"
            };
            Error::new(ErrorKind::InvalidOptions, "attach").detail(why)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use leasehold_testkit::corpus_of_text;

    proptest! {
        #[test]
        fn a_hand_off_survives_its_text(key in ".{1,60}", epoch in any::<Option<u64>>()) {
            prop_assume!(key.len() <= LockKey::MAX_BYTES);
            let key = LockKey::new(key).unwrap();
            let before = DetachedLock { key, owner: OwnerId::random(), epoch, handoffs: 7 };
            prop_assert_eq!(before.expose().parse::<DetachedLock>().unwrap(), before);
        }
    }

    #[test]
    fn whatever_text_is_attached_is_read_as_it_was_shown_or_refused_without_its_owner() {
        corpus_of_text(include_str!("../corpus/detached.txt"), |text| {
            // Also with the right checksum behind it, which whoever changes a text can compute.
            let body = text.rsplit_once(':').map_or(text, |(body, _)| body);
            for text in [text.to_owned(), format!("{body}:{:016x}", checksum(body))] {
                match text.parse::<DetachedLock>() {
                    Ok(lock) => {
                        // Unless it is a part of the key, too.
                        let owner = lock.owner.to_hex();
                        assert!(!format!("{lock:?}").contains(&owner) || lock.key.as_str().contains(&owner), "{text}");
                        assert_eq!(lock.expose().parse::<DetachedLock>().unwrap(), lock);
                        assert!(lock.handoffs <= LocalHandoff::HARD_LIMIT);
                    }
                    Err(error) => {
                        let told = format!("{error} {error:?}");
                        assert!(!told.contains("0123456789abcdef"), "{told}");
                        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
                    }
                }
            }
        });
    }

    #[test]
    fn damaged_texts_are_refused() {
        let owner = "00000000000000000000000000000000";
        let texts =
            ["", "zz:1:0:k", "zz:1:k", &format!("{owner}:x:0:k"), &format!("{owner}:1:64:k"), &format!("{owner}:1:0:")];
        let texts = texts.map(|text| format!("{PREFIX}{text}"));
        for text in texts.iter().map(|text| format!("{text}:{:016x}", checksum(text))).chain(texts.clone()) {
            assert!(text.parse::<DetachedLock>().is_err(), "{text}");
        }
        let good = format!("{PREFIX}{owner}:1:0:k");
        assert!(format!("{good}:{:016x}", checksum(&good)).parse::<DetachedLock>().is_ok());
    }

    #[test]
    fn a_text_of_another_version_is_refused_with_what_to_do() {
        let text = "leasehold9:00000000000000000000000000000000:1700000000000:7:k";
        let error = format!("{text}:{:016x}", checksum(text)).parse::<DetachedLock>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        assert!(error.to_string().contains("another version"), "{error}");
    }

    #[test]
    fn a_text_of_which_a_byte_was_changed_is_refused() {
        let handed =
            DetachedLock { key: LockKey::new("k/ü").unwrap(), owner: OwnerId::random(), epoch: Some(7), handoffs: 13 };
        let text = handed.expose();
        for (at, _) in text.char_indices() {
            for other in ["0", "1", "9", "a", ":", "-", ""] {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                assert!(changed == text || changed.parse::<DetachedLock>().is_err(), "{changed} passes for {text}");
            }
        }
    }
}
