//! What a kind of server is, where servers of one run live, and what a started one is.

use std::fmt::Debug;
use std::path::PathBuf;

use leasehold_testkit::launch::{Lifetime, Process};

/// A kind of server.
pub(super) trait Service: Debug + Sync {
    /// The environment variable in which a suite finds its address.
    fn variable(&self) -> &'static str;
    /// What must be installed for it.
    fn programs(&self) -> &'static [&'static str];
    /// Starts it and returns when it answers.
    fn start(&self, site: &Site) -> Result<Running, String>;
}

/// Where servers of one run live, and for how long.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) folder: PathBuf,
    pub(super) lifetime: Lifetime,
}

/// A service that answers at `url`.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) url: String,
    pub(super) processes: Vec<Process>,
}
