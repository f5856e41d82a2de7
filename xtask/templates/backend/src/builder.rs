use leasehold_core::{EngineOptions, Error, ErrorKind, LocalHandoff, Namespace, Result};

use crate::backend::NewStoreBackend;
use crate::locker::NewStore;
use crate::store::Store;

/// The settings of a [`NewStore`]: a URL, and what differs from it and from the defaults. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct NewStoreBuilder {
    url: Option<String>,
    namespace: Option<String>,
    local_handoff: LocalHandoff,
}

impl NewStoreBuilder {
    /// The store, as `new-store://ADDRESS`, or `new-store://ADDRESS?namespace=NAMESPACE`.
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..self }
    }

    /// The namespace, which keeps the keys of two programs in one store apart: 1 to 64 bytes. It counts more than that of
    /// the URL; `leasehold` by default.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// How far a lease may pass from guard to guard inside of this process without asking the store.
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Connects to the store.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) for settings that cannot be used, before anything is sent;
    /// [`Unavailable`](ErrorKind::Unavailable) if the store cannot be reached; [`Backend`](ErrorKind::Backend) if it refuses.
    pub async fn connect(self) -> Result<NewStore> {
        let options = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(NewStore::with(self.backend().await?, options))
    }

    /// Connects as [`connect`](Self::connect) does, but without an engine around the backend: for wrappers, and for the
    /// conformance suite.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn backend(self) -> Result<NewStoreBackend> {
        let named = |error: Error| error.with_backend(NewStoreBackend::NAME);
        let (address, namespace) = self.settings().map_err(named)?;
        Ok(NewStoreBackend::new(Store::open(&address, namespace).await.map_err(named)?))
    }

    /// The address and the namespace. No error shows the URL: somebody may have written a password into it.
    fn settings(&self) -> Result<(String, Namespace)> {
        let url = self.url.as_deref().ok_or_else(|| refuse("there is no URL"))?;
        let rest =
            url.strip_prefix("new-store://").ok_or_else(|| refuse("the URL does not begin with new-store://"))?;
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        if address.is_empty() {
            return Err(refuse("the URL names no store"));
        }
        if address.contains('@') {
            return Err(refuse("the URL has a user or a password, and this store takes none"));
        }
        let in_url = match query.split_once('=') {
            None if query.is_empty() => None,
            Some(("namespace", namespace)) => Some(namespace),
            _ => return Err(refuse("the URL has a parameter that is not namespace=")),
        };
        let namespace = self.namespace.as_deref().or(in_url).map(Namespace::new).transpose()?;
        Ok((address.to_owned(), namespace.unwrap_or_default()))
    }
}

impl NewStore {
    /// Connects to the store of a URL: see [`NewStoreBuilder::url`].
    ///
    /// # Errors
    /// The errors of [`NewStoreBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// A builder, for settings other than the defaults.
    pub fn builder() -> NewStoreBuilder {
        NewStoreBuilder::default()
    }
}

fn refuse(why: &str) -> Error {
    Error::new(ErrorKind::InvalidOptions, "connect").detail(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_store_and_the_namespace() {
        let read = |builder: NewStoreBuilder| {
            builder.settings().map(|(address, namespace)| (address, namespace.as_str().to_owned())).ok()
        };
        let url = |url| NewStore::builder().url(url);
        let is = |address: &str, namespace: &str| Some((address.to_owned(), namespace.to_owned()));
        assert_eq!(read(url("new-store://db.example:99")), is("db.example:99", "leasehold"));
        assert_eq!(read(url("new-store://db.example?namespace=app")), is("db.example", "app"));
        assert_eq!(read(url("new-store://db.example?namespace=app").namespace("own")), is("db.example", "own"));
    }

    #[test]
    fn a_bad_url_is_refused_and_not_shown() {
        for bad in ["", "else://secret", "new-store://", "new-store://u:secret@db", "new-store://db?secret=1"] {
            let refused = NewStore::builder().url(bad).settings().expect_err(bad);
            assert_eq!(refused.kind(), ErrorKind::InvalidOptions, "{bad}");
            assert!(!format!("{refused} {refused:?}").contains("secret"), "{refused}");
        }
        let refused = NewStore::builder().url("new-store://db?namespace=").settings().expect_err("it is empty");
        assert_eq!(refused.kind(), ErrorKind::InvalidOptions);
    }
}
