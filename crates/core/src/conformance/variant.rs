//! One backend that runs through the suite in several ways, for example with each fast path off.

use std::sync::Arc;

use super::subject::Subject;

/// The environment variable that chooses one variant, for a run and for its helper processes.
pub(super) const VARIABLE: &str = "LEASEHOLD_CONFORMANCE_VARIANT";

/// One of several ways to run a backend through the suite.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) subject: Arc<dyn Subject>,
}

impl Variant {
    /// Whether the environment names this variant, or none.
    pub(super) fn is_chosen(&self) -> bool {
        std::env::var_os(VARIABLE).is_none_or(|name| name == self.name)
    }

    /// What the names of its cases end with.
    pub(super) fn suffix(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("::{}", self.name) }
    }
}
