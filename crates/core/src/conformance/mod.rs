//! The conformance suite: at least one case for every clause of the contract that a backend can break, run against a real store.
//!
//! The author of a backend, in this workspace or elsewhere, adds a test target without the standard harness:
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
//! and a file `tests/conformance.rs` with a [`Fixture`], which connects to the store:
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
//! The first case is a model: random scripts of steps straight to the store, on many keys at once, each answer compared with the
//! contract as code (`model/`). Where steps of a script meet, their answers have to be those of one after the other, in some order.
//! `LEASEHOLD_MODEL_SECONDS=60` asks for a minute, `LEASEHOLD_MODEL_SEED` asks the scripts of a run again,
//! `LEASEHOLD_MODEL_AS_ASKED=1` does not make the one that fails shorter.
//! What a script of one key cannot say has cases by hand: cancellation, runtimes, processes, sessions, many keys at once; so have the
//! rules that an author reads first. What no backend can break whose steps are right is asked of the engine alone, in `tests/it`.
//!
//! A case by hand is an async function named after its clause (`c04_tokens_grow_across_expiry`), in `cases/` by subject. It gets a
//! context with clients of the store, each independent of the others as if it were another process. Most cases use a
//! client's locker, and so the engine that every backend gets; others call the methods of [`Backend`] directly: repeated claims,
//! expired entries, the largest batch, an empty store, several clients at one moment. A new case needs no change to any fixture:
//! the optional methods of [`Fixture`] have defaults.
//!
//! A case that fails prints what was expected and what was seen, or the shortest script that the model found, and the clause of the
//! contract. The run ends with the name of the case to look at first, and with the clauses that are broken:
//!
//! ```text
//! C9: a script, made as short as it fails:
//! the key "model-331d74f02069-k/"
//! claim(a, exclusive, 317ms) by client 1 → Granted { epoch: Some(28728734182748) }
//! wait 329.3ms
//! renew(a, 61.283s) by client 1 → [Held]
//! ← Held, though the lease is not there
//! LEASEHOLD_MODEL_SEED=3817 asks the same scripts
//!
//! C9 **Renewal never creates.** A renewal of a grant that is gone reports the loss. It never brings the key back, even if …
//!
//! begin with c01_any_script_of_steps_is_answered_as_the_contract_says
//! broken: C9, C20
//! ```
//!
//! Known defects of the engine and of the backends in this workspace are listed in `expected-failures.txt`. A listed case is
//! run; it is reported as *ignored* with its reason while it fails, and fails the run once it passes.
//!
//! A case that needs a [`Capability`] which the backend declines is *ignored*, with the reason that the backend gives. If the
//! store is absent, every case is ignored; with `LEASEHOLD_CONFORMANCE_REQUIRED=1` the run fails instead. Where the local
//! hand-off is claimed, every case runs a second time with it off, unless `LEASEHOLD_CONFORMANCE_BRIEF=1`. A case begins when the
//! machine has a processor to spare.
//!
//! Faults (lost replies, silence, refusals) are injected between engine and backend (`faults.rs`); those of a real connection and a real
//! server are in the suite of the [`driver`]. Cases that need several
//! processes start this test program again as a helper (`process.rs`).

mod arguments;
mod cases;
mod clause;
mod direct;
pub mod driver;
mod error_text;
mod expected;
mod faults;
mod fixture;
mod model;
mod needs;
mod parallelism;
mod process;
mod report;
mod run;
mod subject;
mod tokens;
mod variant;
mod verdict;

pub use self::fixture::Fixture;
pub use self::run::{Suite, exclusive, shared};

#[doc(hidden)]
pub use self::arguments::Asked;
pub use self::error_text::error_text;
#[doc(hidden)]
pub use self::expected::Expected;
pub use self::faults::{Fault, Faults, Faulty, Op, RenewalBatch, Request};
#[doc(hidden)]
pub use self::needs::{Skipped, needs, needs_or_why, shows_nothing};
#[doc(hidden)]
pub use self::parallelism::Turns;
#[doc(hidden)]
pub use self::report::{Cases, failures};
#[doc(hidden)]
pub use self::subject::{Fixed, Subject, TestClient};
pub use self::tokens::tokens_grow_although_all_is_forgotten;
#[doc(hidden)]
pub use self::verdict::panic_text;

#[cfg(doc)]
use crate::{Backend, Capability};
