//! The entry points of a test program: run the suite, or play the helper process of one of its cases.

#![allow(clippy::print_stderr, reason = "the report of a test program")]

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Trial;

use super::arguments::Asked;
use super::driver::{self, Rig};
use super::fixture::Fixture;
use super::process;
use super::report::{AT_ONCE, Cases};
use super::subject::{Fixed, Subject};
use super::variant::{self, Variant};
use crate::SharedBackend;

/// Runs the suite on a backend that grants exclusively. To be the `main` of a test target without harness.
pub fn exclusive<F: Fixture>(fixture: F) -> ExitCode {
    Suite::exclusive([("", fixture)]).run()
}

/// Runs the suite on a backend that also grants shared. To be the `main` of a test target without harness.
pub fn shared<F: Fixture<Backend: SharedBackend>>(fixture: F) -> ExitCode {
    Suite::shared([("", fixture)]).run()
}

/// The suite on one backend, in one or several variants.
pub struct Suite {
    variants: Vec<Variant>,
    rig: Option<Arc<dyn Rig>>,
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite").field("variants", &self.variants.len()).finish_non_exhaustive()
    }
}

impl Suite {
    /// The suite on variants of a backend that grants exclusively: with a setting off, say, or on another store.
    ///
    /// Each fixture has a name. The report names each case once per variant: `redis-single::c01_…` for a variant without
    /// a name, and `redis-single::c01_…::queue_off` for the variant `queue_off`. The filter `queue_off` runs the cases of
    /// that variant. With the environment variable `LEASEHOLD_CONFORMANCE_VARIANT` the run has only the variant of that name.
    pub fn exclusive<F: Fixture>(variants: impl IntoIterator<Item = (&'static str, F)>) -> Self {
        Self::of(variants.into_iter().map(|(name, fixture)| (name, Arc::new(Fixed::exclusive(fixture)) as _)))
    }

    /// The suite on variants of a backend that also grants shared, named as [`exclusive`](Self::exclusive) says.
    pub fn shared<F: Fixture<Backend: SharedBackend>>(variants: impl IntoIterator<Item = (&'static str, F)>) -> Self {
        Self::of(variants.into_iter().map(|(name, fixture)| (name, Arc::new(Fixed::shared(fixture)) as _)))
    }

    fn of(variants: impl Iterator<Item = (&'static str, Arc<dyn Subject>)>) -> Self {
        let variants = variants.map(|(name, subject)| Variant { name, subject });
        Self { variants: variants.filter(Variant::is_chosen).collect(), rig: None }
    }

    /// Adds the cases of the [driver suite](driver), on servers of this rig.
    #[must_use]
    pub fn driver(mut self, rig: impl Rig) -> Self {
        self.rig = Some(Arc::new(rig));
        self
    }

    /// Runs the suite, or plays the helper process of one of its cases. To be the `main` of a test target without harness.
    pub fn run(self) -> ExitCode {
        if let Some(code) = self.play() {
            return code;
        }
        let mut asked = Asked::from_args();
        asked.arguments.test_threads.get_or_insert(AT_ONCE);
        match self.cases(&asked) {
            Ok((cases, trials)) => cases.conclude(&asked, libtest_mimic::run(&asked.arguments, trials).exit_code()),
            Err(code) => code,
        }
    }

    /// The cases that are asked for, and what counts them. The error: a store that is required is absent.
    #[doc(hidden)]
    pub fn cases(self, asked: &Asked) -> Result<(Cases, Vec<Trial>), ExitCode> {
        let (cases, mut trials) = Cases::of(self.variants, asked)?;
        // First, because they take longest.
        let rigged = self.rig.iter().flat_map(|rig| driver::trials(rig, asked));
        trials.splice(0..0, rigged);
        Ok((cases, trials))
    }

    /// Plays the helper process of a case, where this process was started as one.
    #[doc(hidden)]
    pub fn play(&self) -> Option<ExitCode> {
        let role = process::Role::from_environment()?;
        let Some(first) = self.variants.first() else {
            eprintln!("{} names no variant of this suite", variant::VARIABLE);
            return Some(ExitCode::FAILURE);
        };
        Some(process::play(&role, &*first.subject))
    }
}
