//! The shared suite: one case or more for every clause of the contract, run against a real store.
//!
//! An author of a backend, in this workspace or elsewhere, adds a test target without the standard harness:
//!
//! ```toml
//! [dev-dependencies]
//! leasehold-core = { version = "0.1", features = ["conformance"] }
//!
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! and in `tests/conformance.rs` says how to reach the store:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use leasehold_core::conformance::{self, Fixture};
//! use leasehold_core::{Backend, Capabilities, Clock, MemoryBackend, Result};
//!
//! struct Mine(MemoryBackend);
//!
//! #[async_trait::async_trait]
//! impl Fixture for Mine {
//!     type Backend = MemoryBackend;
//!     fn capabilities(&self) -> Capabilities {
//!         self.0.capabilities()
//!     }
//!     async fn connect(&self, namespace: &str) -> Result<MemoryBackend> {
//!         Ok(self.0.namespace(namespace))
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     conformance::shared(Mine(MemoryBackend::new(Clock::system())))
//! }
//! ```
//!
//! The cases go through the engine that every backend gets, and through the steps of [`Backend`] directly: batches with
//! one bad entry, repeated claims, expired entries, an empty store, several clients at one moment. A new case asks every
//! backend, of other authors too, without any change on their side: hooks of [`Fixture`] have defaults.
//!
//! A case that fails shows the clause of the contract, what was expected, and what was seen. The run ends with the case
//! to look at first, and with the clauses that are broken:
//!
//! ```text
//! C9 **Renewal never creates.** A renewal of a grant that is gone reports the loss; it does not bring the key back.
//! expected: held != LeaseStatus::Held
//! seen:     the renewal of an expired grant said Yes
//!
//! begin with c09_an_expired_grant_that_nobody_took_is_not_renewed
//! broken: C9, C20
//! ```
//!
//! What is known to be broken in the engine or in a backend here is in one list, `expected-failures.txt`: such a case is
//! run, is *ignored* with its reason while it fails, and fails the run once it passes.
//!
//! A case that needs a [`Capability`] which is not claimed is *ignored*, with the reason that the backend gives; if
//! the store is absent, every case is, and with `LEASEHOLD_CONFORMANCE_REQUIRED=1` the run fails instead. Where the
//! hand-off inside a process is claimed, every case runs once more with it off. Faults (lost replies, silence,
//! refusals) are injected between engine and backend; cases that need several processes run this same test program
//! again as a helper.

mod cases;
mod clause;
mod expected;
mod faults;
mod fixture;
mod needs;
mod process;
mod report;
mod run;
mod subject;
mod tokens;
mod told;
mod variant;
mod verdict;

pub use self::fixture::Fixture;
pub use self::run::{exclusive, exclusive_variants, shared};

#[doc(hidden)]
pub use self::expected::Expected;
#[doc(hidden)]
pub use self::faults::{Fault, Faults, Op};
#[doc(hidden)]
pub use self::needs::{Shown, ahead_of_the_clock, needs, needs_or_why, shows_nothing};
#[doc(hidden)]
pub use self::report::{Report, report};
#[doc(hidden)]
pub use self::subject::{Shareable, Subject, TestClient, Unshared};
pub use self::tokens::tokens_grow_although_all_is_forgotten;
pub use self::told::shown;

#[cfg(doc)]
use crate::{Backend, Capability};
