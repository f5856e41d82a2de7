//! The driver suite: faults of a connection and of a server, brought about in a server that each case starts for itself.
//!
//! The conformance suite injects faults between engine and backend, so it does not see what a backend's driver makes of a connection
//! that breaks, or of a server that is silent, full or gone. These cases do. Each asks for the kind of the error and for its words, for
//! what is held afterwards, and that the same locker works again when the fault is over. Others look at the server: what it keeps for two
//! lockers after a thousand hand-offs, and what a key costs after ten thousand cycles.
//!
//! The author of a backend implements a [`Rig`], which starts a server, and a [`Rigged`], which is one: where it listens, and how it is
//! killed, restarted, filled and so on. Whatever a rig cannot do has a default that says so, and the cases that need it are *ignored* with
//! that reason. The cases then run beside those of the conformance suite:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use leasehold_core::conformance::driver::{Able, Rig, Rigged, Room, never};
//! use leasehold_core::conformance::{Fixture, Suite};
//! use leasehold_core::{Kind, Locker, Locks, Memory};
//!
//! /// The constant of the backend's crate.
//! const KIND: Kind = Kind::new("mine", &["mine"], || Memory::new().capabilities(), |_target| {
//!     Box::pin(async { Ok(Locks::shared(Memory::new())) })
//! });
//!
//! struct Servers;
//!
//! #[async_trait::async_trait]
//! impl Rig for Servers {
//!     fn kind(&self) -> Kind {
//!         KIND
//!     }
//!     async fn start(&self, _room: Room) -> Able<Box<dyn Rigged>> {
//!         // Start a server on a free port of 127.0.0.1, and answer how it is stopped, killed and so on.
//!         never("there is none for this store")
//!     }
//! }
//!
//! fn run(fixture: impl Fixture) -> ExitCode {
//!     Suite::exclusive([("", fixture)]).driver(Servers).run()
//! }
//! ```
//!
//! Clients reach the server straight, or through a [`Proxy`] with faults. A case is named `driver::` and what a user can rely on.

mod cases;
mod idle_runtime;
mod proxy;
mod rig;
mod run;
mod silenced;
mod stage;
mod tries;

#[doc(hidden)]
pub use self::idle_runtime::a_runtime_that_rests_stalls_nobody;
pub use self::proxy::{Effects, Proxy};
pub use self::rig::{Able, Borrowed, Fault, PASSWORD, Rig, Rigged, Room, Said, Unable, never};
#[doc(hidden)]
pub use self::silenced::Silenced;

pub(super) use self::run::trials;
