/// The result of one check of a store.
///
/// ```
/// use leasehold_core::{Finding, Health};
///
/// let finding = Finding::warning("eviction-policy", "the server evicts entries when memory is full")
///     .cure("CONFIG SET maxmemory-policy noeviction");
/// assert_eq!((finding.id, finding.health), ("eviction-policy", Health::Warning));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Finding {
    /// Names the check, in lower case with hyphens. It stays the same from release to release.
    pub id: &'static str,
    /// How bad it is.
    pub health: Health,
    /// What was found, in one line and without credentials.
    pub text: String,
    /// What ends it: a command, or a line of configuration. `None` where nothing is wrong, or nobody but a person can tell.
    pub cure: Option<String>,
}

impl Finding {
    /// How many warnings of one kind are told one by one.
    pub const TOLD: usize = 5;

    /// A finding of a check with this id.
    pub fn new(id: &'static str, health: Health, text: impl Into<String>) -> Self {
        Self { id, health, text: text.into(), cure: None }
    }

    /// A check that found nothing wrong.
    pub fn well(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(id, Health::Well, text)
    }

    /// A check that the store does not let us make.
    pub fn unknown(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(id, Health::Unknown, text)
    }

    /// A fault that may break locks that are granted, or for which the lock of one key is refused.
    pub fn warning(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(id, Health::Warning, text)
    }

    /// A fault for which every lock is refused.
    pub fn error(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(id, Health::Error, text)
    }

    /// The first [`TOLD`](Self::TOLD) of warnings of one kind, such as of entries that Leasehold did not write. If there are more,
    /// a warning behind them says so in the words that `more` has for their number, with a cure of its own.
    pub fn first_of(mut warnings: Vec<Self>, more: impl FnOnce(usize) -> String, cure: &str) -> Vec<Self> {
        let others = warnings.len().saturating_sub(Self::TOLD);
        warnings.truncate(Self::TOLD);
        if others > 0 {
            warnings.extend(warnings.first().map(|first| Self::warning(first.id, more(others)).cure(cure)));
        }
        warnings
    }

    /// Sets what ends it: a command, or a line of configuration.
    pub fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: Some(cure.into()), ..self }
    }
}

/// How bad a [`Finding`] is. The larger, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Health {
    /// Nothing is wrong.
    Well,
    /// The store does not tell.
    Unknown,
    /// Locks are granted, and something may break them, or keep one key from being locked.
    Warning,
    /// Every lock is refused.
    Error,
}

impl Health {
    /// A word for reports: `ok`, `unknown`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
