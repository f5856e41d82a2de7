//! What the author of a backend implements for the suite.

use async_trait::async_trait;

use crate::{Backend, Capabilities, Clock, Result};

/// How the suite reaches a store.
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// The backend under test.
    type Backend: Backend;

    /// What it claims. No I/O: it is asked while cases are listed.
    fn capabilities(&self) -> Capabilities;

    /// Whether the store is there.
    ///
    /// # Errors
    /// Why it is not, in words for the report.
    async fn available(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    /// A new client of the store, independent of every other, that sees only this namespace.
    async fn connect(&self, namespace: &str) -> Result<Self::Backend>;

    /// The same, for a client whose own clock is this one: it may be an hour off.
    ///
    /// Only for a backend that reads a clock on the client's side, for whatever purpose; expiry must not depend on it.
    async fn connect_at(&self, namespace: &str, clock: &Clock) -> Result<Self::Backend> {
        let _ = clock;
        self.connect(namespace).await
    }

    /// Environment variables with which a second process builds a fixture on the same store.
    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}
