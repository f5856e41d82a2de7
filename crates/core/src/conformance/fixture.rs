use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;

use super::subject::{Shareable, Subject, Unshared};
use super::{process, report};
use crate::{Backend, Capabilities, Clock, Result, SharedBackend};

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

/// Runs the suite on a backend that grants exclusively. To be the `main` of a test target without harness.
pub fn exclusive<F: Fixture>(fixture: F) -> ExitCode {
    main(Arc::new(Unshared(fixture)))
}

/// Runs the suite on a backend that also grants shared. To be the `main` of a test target without harness.
pub fn shared<F: Fixture<Backend: SharedBackend>>(fixture: F) -> ExitCode {
    main(Arc::new(Shareable(fixture)))
}

#[allow(clippy::needless_pass_by_value, reason = "it lives as long as the program")]
fn main(subject: Arc<dyn Subject>) -> ExitCode {
    match process::Role::from_environment() {
        Some(role) => process::play(&role, &*subject),
        None => report::run(&subject),
    }
}
