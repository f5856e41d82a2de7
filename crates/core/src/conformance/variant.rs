//! One backend that runs through the suite in several ways, for example with each fast path off.

use std::sync::Arc;

use async_trait::async_trait;

use super::subject::{Subject, TestClient};
use crate::{Capabilities, Clock, LocalHandoff, Result};

/// The environment variable that chooses one variant, for a run and for its helper processes.
pub(super) const VARIABLE: &str = "LEASEHOLD_CONFORMANCE_VARIANT";

/// One of several ways to run a backend through the suite.
pub(super) struct Variant {
    name: &'static str,
    subject: Arc<dyn Subject>,
}

impl Variant {
    pub(super) fn new(name: &'static str, subject: Arc<dyn Subject>) -> Self {
        Self { name, subject }
    }

    /// Whether the environment names this variant, or none.
    pub(super) fn is_chosen(&self) -> bool {
        std::env::var_os(VARIABLE).is_none_or(|name| name == self.name)
    }

    /// What the names of its cases end with.
    pub(super) fn suffix(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("::{}", self.name) }
    }
}

/// As the subject of the variant; its helper processes take the same variant.
#[async_trait]
impl Subject for Variant {
    fn capabilities(&self) -> Capabilities {
        self.subject.capabilities()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        self.subject.available().await
    }

    async fn client(&self, namespace: &str, clock: Clock, local_handoff: LocalHandoff) -> Result<TestClient> {
        self.subject.client(namespace, clock, local_handoff).await
    }

    fn signals_in_turn(&self) -> bool {
        self.subject.signals_in_turn()
    }

    fn steps_are_atomic(&self) -> bool {
        self.subject.steps_are_atomic()
    }

    fn environment(&self) -> Vec<(String, String)> {
        let variant = (VARIABLE.to_owned(), self.name.to_owned());
        self.subject.environment().into_iter().chain([variant]).collect()
    }
}
