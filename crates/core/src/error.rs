use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::printable::printable;
use crate::{LockKey, LossReason};

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with which key, in which operation, on which backend, and whether a retry may cure it.
///
/// `Display` is one line without the [`source`](StdError::source), so that a printed chain says each thing once.
/// Neither `Display` nor `Debug` ever shows a credential.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    backend: Option<&'static str>,
    key: Option<LockKey>,
    detail: Option<String>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// The kind of a failure, by what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is empty or too long. Nothing was sent.
    InvalidKey,
    /// A lease, URL or other setting makes no sense. Nothing was sent.
    InvalidOptions,
    /// The backend does not claim what was asked for. Nothing was sent.
    Unsupported,
    /// Another holder kept the key for the whole wait.
    TimedOut,
    /// The lock was held, and was lost before it was released.
    Lost(LossReason),
    /// The store could not be asked, or refused for the moment. Definitely not applied; a retry is safe.
    Unavailable,
    /// The store may or may not have carried out the request: the reply was lost. What it did is taken back in the
    /// background.
    Indeterminate,
    /// The locker was closed, or the runtime that connected has ended, and its connections with it.
    Closed,
    /// The store refused for good: authentication, permission, a wrong type, a bad schema.
    Backend,
}

impl Error {
    /// An error of `kind` in `operation`, a verb phrase such as `"acquire"`.
    pub fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self(Arc::new(Inner { kind, operation, backend: None, key: None, detail: None, source: None }))
    }

    /// The error of a store that gave no answer in time.
    pub(crate) fn unanswered(operation: &'static str) -> Self {
        Self::new(ErrorKind::Indeterminate, operation).detail("the store gave no answer")
    }

    /// Adds the backend's name.
    #[must_use]
    pub fn with_backend(mut self, backend: &'static str) -> Self {
        Arc::make_mut(&mut self.0).backend = Some(backend);
        self
    }

    /// Adds the key.
    #[must_use]
    pub fn key(mut self, key: &LockKey) -> Self {
        Arc::make_mut(&mut self.0).key = Some(key.clone());
        self
    }

    /// Adds what a person needs to act on it. Must not contain a credential.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).detail = Some(detail.into());
        self
    }

    /// Puts the place of the store, such as its address, before the detail. Must not contain a credential.
    #[must_use]
    pub fn at(mut self, place: &str) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.detail = Some(inner.detail.take().map_or_else(|| place.to_owned(), |told| format!("{place}: {told}")));
        self
    }

    /// Adds the cause. Must not show a credential.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Arc::make_mut(&mut self.0).source = Some(source.into().into());
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was being done.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Which backend said so.
    pub fn backend(&self) -> Option<&'static str> {
        self.0.backend
    }

    /// What a person needs to act on it: the [`detail`](Self::detail).
    pub fn advice(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Which key it was about.
    pub fn lock_key(&self) -> Option<&LockKey> {
        self.0.key.as_ref()
    }

    /// Whether trying again may succeed without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unavailable | ErrorKind::Indeterminate)
    }

    /// Fills in what the place that classified the error did not know.
    pub(crate) fn within(mut self, operation: &'static str, backend: &'static str, key: Option<&LockKey>) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.operation = operation;
        inner.backend.get_or_insert(backend);
        if inner.key.is_none() {
            inner.key = key.cloned();
        }
        self
    }

    /// This error for another caller that it concerns: the text of the source becomes a part of the detail, in place of the
    /// source.
    #[must_use]
    pub fn retell(&self) -> Self {
        let mut told = self.clone();
        let inner = Arc::make_mut(&mut told.0);
        if let Some(source) = inner.source.take() {
            // What to do about it stands in the detail.
            inner.detail =
                Some(inner.detail.take().map_or_else(|| source.to_string(), |told| format!("{told}: {source}")));
        }
        told
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.operation)?;
        if let Some(key) = &self.0.key {
            write!(f, " {key:?}")?;
        }
        if let Some(backend) = self.0.backend {
            write!(f, " on {backend}")?;
        }
        // It may quote what a server said.
        match (self.0.detail.as_deref().map(printable), self.0.kind) {
            (Some(detail), ErrorKind::InvalidKey | ErrorKind::InvalidOptions) => write!(f, ": {detail}"),
            (Some(detail), kind) => write!(f, ": {kind}: {detail}"),
            (None, kind) => write!(f, ": {kind}"),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidKey => f.write_str("invalid key"),
            Self::InvalidOptions => f.write_str("invalid options"),
            Self::Unsupported => f.write_str("not supported"),
            Self::TimedOut => f.write_str("held by another for the whole wait"),
            Self::Lost(reason) => write!(f, "lost: {reason}"),
            Self::Unavailable => f.write_str("store unavailable"),
            Self::Indeterminate => f.write_str("outcome unknown"),
            Self::Closed => f.write_str("the locker was closed"),
            Self::Backend => f.write_str("refused by the store"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("backend", &self.0.backend)
            .field("key", &self.0.key)
            .field("detail", &self.0.detail)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_with_all_that_is_known_and_not_the_source() {
        let error = Error::new(ErrorKind::Indeterminate, "acquire")
            .with_backend("redis-single")
            .key(&LockKey::new("a\nb").unwrap())
            .caused_by("connection reset");
        assert_eq!(error.to_string(), r#"acquire "a\nb" on redis-single: outcome unknown"#);
        let quoting = Error::new(ErrorKind::Backend, "acquire").detail("it said \"\u{1b}]0;\u{7}\"\nERROR");
        assert_eq!(quoting.to_string(), r#"acquire: refused by the store: it said "\u{1b}]0;\u{7}"\nERROR"#);
        assert_eq!(error.source().unwrap().to_string(), "connection reset");
        assert!(error.is_transient());
    }

    #[test]
    fn only_unavailable_and_indeterminate_are_transient() {
        for kind in [
            ErrorKind::InvalidKey,
            ErrorKind::InvalidOptions,
            ErrorKind::Unsupported,
            ErrorKind::TimedOut,
            ErrorKind::Lost(LossReason::Expired),
            ErrorKind::Backend,
        ] {
            assert!(!Error::new(kind, "acquire").is_transient(), "{kind:?}");
        }
        assert!(Error::new(ErrorKind::Unavailable, "acquire").is_transient());
    }
}
