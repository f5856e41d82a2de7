use std::fmt;

/// Why a guard was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LossReason {
    /// The lease ran out: the process was paused, or renewal was switched off.
    Expired,
    /// The store says that another owner has the key, or none.
    Stolen,
    /// An operator released the key with [`force_release`](crate::Admin::force_release).
    ForceReleased,
    /// The limit on the total time of holding was reached: [`max_hold`](crate::LockOptions::max_hold).
    MaxHold,
    /// The lease ran out while the store did not renew it: it gave no answer, or refused (a server that is read-only, or a
    /// user who lost the right).
    Unreachable,
    /// The locker was closed.
    Shutdown,
}

impl LossReason {
    /// A short name for logs, metrics and JSON: lower case, with underscores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Stolen => "stolen",
            Self::ForceReleased => "force_released",
            Self::MaxHold => "max_hold",
            Self::Unreachable => "unreachable",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lease ran out",
            Self::Stolen => "the store says that it is no longer ours",
            Self::ForceReleased => "an operator released it by force",
            Self::MaxHold => "the cap on the time of holding was reached",
            Self::Unreachable => "the lease ran out while the store did not renew it",
            Self::Shutdown => "the locker was closed",
        })
    }
}

/// How a release ended, when that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The lease was held until now, and its key is free.
    Released,
    /// The lease was lost before for this reason. The present holder of the key keeps it.
    AlreadyLost(LossReason),
}
