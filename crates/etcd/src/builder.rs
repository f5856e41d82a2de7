use std::fmt;

use leasehold_core::{EngineOptions, Error, LocalHandoff, Namespace, Result};

use crate::address::{Address, refuse};
use crate::backend::EtcdBackend;
use crate::locker::Etcd;
use crate::nodes::Nodes;
use crate::store::Store;

/// The settings of an [`Etcd`]: a URL, and what differs from it and from the defaults. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Default)]
#[must_use]
pub struct EtcdBuilder {
    url: Option<String>,
    namespace: Option<String>,
    group_commit: Option<bool>,
    local_handoff: LocalHandoff,
}

impl EtcdBuilder {
    /// The servers, as `etcds://user:password@host:port,host:port/namespace`; see "Tuning".
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..self }
    }

    /// The namespace, which keeps the keys of two programs in one etcd apart: 1 to 64 bytes. `leasehold` by default.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Whether acquisitions and releases that come in while another is on its way are sent together, by one transaction (group
    /// commit); default yes.
    pub fn group_commit(self, wanted: bool) -> Self {
        Self { group_commit: Some(wanted), ..self }
    }

    /// How far a lease may pass from guard to guard inside of this process without asking the server.
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Connects to one of the servers, logs in where the URL names a user, and asks for something that a majority has to answer.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) for settings that cannot be used;
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if no server can be reached, or none has a majority;
    /// [`Backend`](crate::ErrorKind::Backend) if the server refuses.
    pub async fn connect(self) -> Result<Etcd> {
        let options = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(Etcd::with(self.backend().await?, options))
    }

    /// Connects as [`connect`](Self::connect) does, but without an engine around the backend: for wrappers, and for the
    /// conformance suite.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn backend(self) -> Result<EtcdBackend> {
        let named = |error: Error| error.with_backend(EtcdBackend::NAME);
        let store = Store::new(Nodes::new(self.address().map_err(named)?));
        // Whoever answers takes part in the decision.
        store.base("connect").await.map_err(named)?;
        Ok(EtcdBackend { store })
    }

    fn address(&self) -> Result<Address> {
        let mut address = Address::parse(self.url.as_deref().ok_or_else(|| refuse("there is no URL"))?)?;
        if let Some(namespace) = &self.namespace {
            address.namespace = Namespace::new(namespace)?;
        }
        address.group_commit = self.group_commit.unwrap_or(address.group_commit);
        Ok(address)
    }
}

impl fmt::Debug for EtcdBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        let Self { namespace, group_commit, .. } = self;
        let mut shown = f.debug_struct("EtcdBuilder");
        shown.field("namespace", namespace).field("group_commit", group_commit).finish_non_exhaustive()
    }
}

impl Etcd {
    /// Connects to the servers of an `etcds://user:password@host:port,host:port/namespace` URL, or one with `etcd://`.
    ///
    /// # Errors
    /// The errors of [`EtcdBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// A builder, for settings other than the defaults.
    pub fn builder() -> EtcdBuilder {
        EtcdBuilder::default()
    }
}
