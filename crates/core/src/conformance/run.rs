use std::process::ExitCode;
use std::sync::Arc;

use super::fixture::Fixture;
use super::subject::{Shareable, Subject, Unshared};
use super::{process, report};
use crate::SharedBackend;

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
