use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::{Error, ErrorKind, Result};

/// What one acquisition asks for: the length of the lease, how long to wait, whether to renew, a limit on the time of
/// holding, and the texts for those who inspect the key.
///
/// For what is not chosen, the defaults of the locker count ([`with_defaults`](crate::LockerExt::with_defaults)).
///
/// ```
/// use std::time::Duration;
/// use leasehold_core::{LockOptions, Wait};
///
/// let options = LockOptions::new()
///     .ttl(Duration::from_secs(10))
///     .wait(Wait::UpTo(Duration::from_secs(2)))
///     .reason("nightly report");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct LockOptions {
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) warn_after: Option<Duration>,
    pub(crate) label: Option<Text>,
    pub(crate) reason: Option<Text>,
    pub(crate) given: Given,
}

/// A label or a reason, which a process shares among its requests.
pub(crate) type Text = Arc<str>;

/// Which settings were chosen. For the others, the defaults of the locker count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(crate) struct Given {
    ttl: bool,
    wait: bool,
    renew: bool,
    label: bool,
}

/// How long an acquisition waits for another holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// The store is asked once.
    Never,
    /// Until granted or for this long, whichever comes first. Zero is [`Wait::Never`].
    UpTo(Duration),
    /// Until granted, cancelled, or failed for good.
    Forever,
}

impl Wait {
    /// When it is over, if it begins at `started`.
    pub(crate) fn limit(self, started: Moment) -> Moment {
        match self {
            Self::Never => started,
            Self::UpTo(patience) => started.plus(patience),
            Self::Forever => Moment::NEVER,
        }
    }
}

impl LockOptions {
    /// The shortest lease: below it the round trip to the store is the larger part.
    pub const MIN_TTL: Duration = Duration::from_millis(10);
    /// The longest lease: a lost holder must not block a key for days, and stores overflow on huge intervals.
    pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);
    /// The longest [`label`](Self::label) or [`reason`](Self::reason), in bytes.
    pub const MAX_TEXT_BYTES: usize = 1024;

    /// Nothing chosen yet. Where the locker has no defaults either: a lease of 30 s that is renewed, a wait without a limit,
    /// no limit on the time of holding, and the [default label](crate::default_label).
    pub fn new() -> Self {
        Self {
            ttl: Duration::from_secs(30),
            wait: Wait::Forever,
            renew: true,
            max_hold: None,
            warn_after: None,
            label: None,
            reason: None,
            given: Given::default(),
        }
    }

    /// The lease: how long after the last renewal the store keeps the key for a holder that is gone.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, given: Given { ttl: true, ..self.given }, ..self }
    }

    /// How long the acquisition waits while another holder has the key.
    pub fn wait(self, wait: Wait) -> Self {
        Self { wait, given: Given { wait: true, ..self.given }, ..self }
    }

    /// Whether the lease is renewed in the background, from a third of it on.
    pub fn renew(self, renew: bool) -> Self {
        Self { renew, given: Given { renew: true, ..self.given }, ..self }
    }

    /// A limit on the total time of holding: renewal stops there, and the guard is lost with
    /// [`LossReason::MaxHold`](crate::LossReason::MaxHold).
    pub fn max_hold(self, cap: Duration) -> Self {
        Self { max_hold: Some(cap), ..self }
    }

    /// Logs a warning that names the holder when the acquisition has waited for so long. Without it, or a default of the locker,
    /// there is none; with [`Duration::MAX`] there is none in spite of a default.
    ///
    /// The warning is the event `waiting long`, once for each acquisition. For it the store is asked once who holds the key
    /// ([`inspect`](crate::Admin::inspect)), while the wait goes on, and for one waiter of a locker at a time; an acquisition
    /// that is granted earlier sends nothing more. A waiter of a [`Semaphore`](crate::Semaphore) waits for every slot, and warns for each.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
    /// use std::time::Duration;
    /// use leasehold_core::{LockOptions, LockerExt, Memory};
    ///
    /// let locks = Memory::new().with_defaults(LockOptions::new().warn_after(Duration::from_secs(30)));
    /// let guard = locks.lock("invoice/42").await?;
    /// # drop(guard);
    /// # Ok(()) }
    /// ```
    pub fn warn_after(self, wait: Duration) -> Self {
        Self { warn_after: Some(wait), ..self }
    }

    /// Who holds the lock: free text of at most [`MAX_TEXT_BYTES`](Self::MAX_TEXT_BYTES), stored beside the grant and shown
    /// by [`inspect`](crate::Admin::inspect). Without one it is the [default label](crate::default_label).
    pub fn label(self, label: impl Into<Arc<str>>) -> Self {
        Self { label: Some(label.into()), given: Given { label: true, ..self.given }, ..self }
    }

    /// Stores no label beside the grant, not even the [default label](crate::default_label).
    pub fn no_label(self) -> Self {
        Self { label: None, given: Given { label: true, ..self.given }, ..self }
    }

    /// Why the lock is held: free text of at most [`MAX_TEXT_BYTES`](Self::MAX_TEXT_BYTES), stored beside the grant and shown
    /// by [`inspect`](crate::Admin::inspect).
    pub fn reason(self, reason: impl Into<Arc<str>>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// These options, with `defaults` for every setting that was not chosen.
    ///
    /// ```
    /// use std::time::Duration;
    /// use leasehold_core::{LockOptions, Wait};
    ///
    /// let defaults = LockOptions::new().ttl(Duration::from_secs(10)).label("billing");
    /// let options = LockOptions::new().wait(Wait::Never).or(&defaults);
    /// assert_eq!((options.lease(), options.patience()), (Duration::from_secs(10), Wait::Never));
    /// assert_eq!(options.label_text(), Some("billing"));
    /// ```
    pub fn or(self, defaults: &Self) -> Self {
        let Self { ttl, wait, renew, max_hold, warn_after, label, reason, given } = self;
        Self {
            ttl: if given.ttl { ttl } else { defaults.ttl },
            wait: if given.wait { wait } else { defaults.wait },
            renew: if given.renew { renew } else { defaults.renew },
            max_hold: max_hold.or(defaults.max_hold),
            warn_after: warn_after.or(defaults.warn_after),
            label: if given.label { label } else { defaults.label.clone() },
            reason: reason.or_else(|| defaults.reason.clone()),
            given: Given {
                ttl: given.ttl || defaults.given.ttl,
                wait: given.wait || defaults.given.wait,
                renew: given.renew || defaults.given.renew,
                label: given.label || defaults.given.label,
            },
        }
    }

    /// The lease that is asked for: see [`ttl`](Self::ttl).
    pub fn lease(&self) -> Duration {
        self.ttl
    }

    /// How long the acquisition waits: see [`wait`](Self::wait).
    pub fn patience(&self) -> Wait {
        self.wait
    }

    /// Whether the lease is renewed in the background: see [`renew`](Self::renew).
    pub fn renews(&self) -> bool {
        self.renew
    }

    /// The limit on the total time of holding: see [`max_hold`](Self::max_hold).
    pub fn hold_limit(&self) -> Option<Duration> {
        self.max_hold
    }

    /// After which wait a warning names the holder: see [`warn_after`](Self::warn_after).
    pub fn warns_after(&self) -> Option<Duration> {
        self.warn_after
    }

    /// Who holds it: see [`label`](Self::label).
    pub fn label_text(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Why it is held: see [`reason`](Self::reason).
    pub fn reason_text(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::new(ErrorKind::InvalidOptions, "check lock options").detail(why));
        if !(Self::MIN_TTL..=Self::MAX_TTL).contains(&self.ttl) {
            return refuse(format!("a ttl of {:?} is outside 10 ms to 24 h", self.ttl));
        }
        if self.max_hold.is_some_and(|cap| cap.is_zero()) {
            return refuse("a max_hold of zero would end the hold before it began".into());
        }
        for (name, text) in [("label", &self.label), ("reason", &self.reason)] {
            if text.as_ref().is_some_and(|text| text.len() > Self::MAX_TEXT_BYTES) {
                return refuse(format!("the {name} is longer than {} bytes", Self::MAX_TEXT_BYTES));
            }
        }
        Ok(())
    }
}

impl Default for LockOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_of_10_ms_and_24_h_are_allowed_and_a_zero_cap_is_not() {
        for good in [Duration::from_millis(10), Duration::from_secs(24 * 3600)] {
            LockOptions::new().ttl(good).check().unwrap();
        }
        let refused = LockOptions::new().max_hold(Duration::ZERO).check().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidOptions);
    }
}
