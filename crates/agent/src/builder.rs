use std::path::PathBuf;

use leasehold_core::{EngineOptions, Error, ErrorKind, LocalHandoff, Result};

use crate::backend::AgentBackend;
use crate::locker::AgentLocks;

/// The settings of [`AgentLocks`]. Nothing is checked or sent before [`connect`](Self::connect).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AgentBuilder {
    path: PathBuf,
    local_handoff: LocalHandoff,
}

impl AgentBuilder {
    /// The socket of the agent.
    pub fn path(self, path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// How far a lease may pass from guard to guard inside of this process without asking the agent.
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Connects to the agent, and asks what it serves.
    ///
    /// # Errors
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) without a path; [`Unavailable`](ErrorKind::Unavailable) if no agent answers at
    /// the socket; [`Backend`](ErrorKind::Backend) if it refuses: its store has no leases, or has sessions.
    pub async fn connect(self) -> Result<AgentLocks> {
        let options = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(AgentLocks::with(self.backend().await?, options))
    }

    /// Connects as [`connect`](Self::connect) does, but without an engine around the backend: for wrappers, and for the
    /// conformance suite.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn backend(self) -> Result<AgentBackend> {
        let named = |error: Error| error.with_backend(AgentBackend::NAME);
        if self.path.as_os_str().is_empty() {
            let why = "the path of the agent's socket is missing, as in agent:/run/leasehold.sock";
            return Err(named(Error::new(ErrorKind::InvalidOptions, "connect").detail(why)));
        }
        AgentBackend::connect(self.path).await.map_err(named)
    }
}

impl AgentLocks {
    /// Connects to the agent of an `agent:/path/of/socket` URL.
    ///
    /// # Errors
    /// The errors of [`AgentBuilder::connect`], and [`InvalidOptions`](ErrorKind::InvalidOptions) for another URL.
    pub async fn connect(url: &str) -> Result<Self> {
        let path = url.strip_prefix("agent:").map(|path| path.strip_prefix("//").unwrap_or(path)).unwrap_or_default();
        if url.starts_with("agent://") && !path.starts_with('/') || path.contains(['?', '#']) {
            let why = "the URL of an agent is the path of its socket, as in agent:/run/leasehold.sock";
            let refused = Error::new(ErrorKind::InvalidOptions, "connect").with_backend(AgentBackend::NAME);
            return Err(refused.detail(why));
        }
        Self::builder().path(path).connect().await
    }

    /// A builder, for settings other than the defaults.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }
}
