use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Namespace, Result};

/// The store of a URL: the connection to it, and the namespace. Clones share the connection.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    address: Arc<str>,
    /// `namespace.name_of(key)` is the name of the entry of a key: different keys and namespaces have different names, and
    /// `range_of` and `key_of` serve `list`.
    pub(crate) namespace: Namespace,
}

impl Store {
    /// The longest time that the store is given to answer. Every step has to end within it, also when the store is silent.
    pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

    /// Connects to the store at `address`, or answers that it cannot be reached.
    pub(crate) async fn open(address: &str, namespace: Namespace) -> Result<Self> {
        ready(Ok(Self { address: address.into(), namespace })).await
    }

    /// Closes the connection. Steps that begin later fail at once with `ErrorKind::Closed`, and those that are under way with the same,
    /// or with `ErrorKind::Indeterminate` if they were sent.
    pub(crate) async fn close(&self) {
        ready(()).await;
    }

    /// The answer of a step that is not written yet. This function goes with the last of them.
    pub(crate) fn not_written<T>(&self, step: &'static str, key: &str) -> Ready<Result<T>> {
        let name = format!("{}/{key}", self.namespace.as_str());
        let why = format!("{step} is not written yet (of {name:?} at {})", self.address);
        ready(Err(Error::new(ErrorKind::Unsupported, step).detail(why)))
    }
}
