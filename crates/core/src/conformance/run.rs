//! The entry points of a test target: run the suite, or play the helper process of one of its cases.

#![allow(clippy::print_stderr, reason = "the report of a test program")]

use std::process::ExitCode;
use std::sync::Arc;

use super::fixture::Fixture;
use super::subject::{Shareable, Unshared};
use super::variant::{self, Variant};
use super::{process, report};
use crate::SharedBackend;

/// Runs the suite on a backend that grants exclusively. To be the `main` of a test target without harness.
pub fn exclusive<F: Fixture>(fixture: F) -> ExitCode {
    exclusive_variants([("", fixture)])
}

/// Runs the suite on several variants of a backend that grants exclusively: with a setting off, say, or on another store.
/// To be the `main` of a test target without harness.
///
/// Each fixture has a name. The report names each case once per variant: `redis-single::c01_…` for a variant without
/// a name, and `redis-single::c01_…::queue_off` for the variant `queue_off`. The filter `queue_off` runs the cases of
/// that variant. With the environment variable `LEASEHOLD_CONFORMANCE_VARIANT` the run has only the variant of that name.
pub fn exclusive_variants<F: Fixture>(variants: impl IntoIterator<Item = (&'static str, F)>) -> ExitCode {
    main(variants.into_iter().map(|(name, fixture)| Variant::new(name, Arc::new(Unshared(fixture)))).collect())
}

/// Runs the suite on a backend that also grants shared. To be the `main` of a test target without harness.
pub fn shared<F: Fixture<Backend: SharedBackend>>(fixture: F) -> ExitCode {
    shared_variants([("", fixture)])
}

/// Runs the suite once for each variant of a backend that also grants shared, as [`exclusive_variants`] does.
pub fn shared_variants<F: Fixture<Backend: SharedBackend>>(
    variants: impl IntoIterator<Item = (&'static str, F)>,
) -> ExitCode {
    main(variants.into_iter().map(|(name, fixture)| Variant::new(name, Arc::new(Shareable(fixture)))).collect())
}

fn main(variants: Vec<Variant>) -> ExitCode {
    let variants: Vec<_> = variants.into_iter().filter(Variant::is_chosen).collect();
    let Some(first) = variants.first() else {
        eprintln!("{} names no variant of this suite", variant::VARIABLE);
        return ExitCode::FAILURE;
    };
    match process::Role::from_environment() {
        Some(role) => process::play(&role, first),
        None => report::run(variants),
    }
}
