use leasehold_core::{Backed, Capabilities, Engine, EngineOptions, Result};
use leasehold_redis::fred::clients::Client;

use crate::{RedisSingleBackend, RedisSingleBuilder};

/// Locks on one Redis: a single server, the primary of a Sentinel set, or a Cluster.
///
/// Clones share one connection, which ends with [`close`](Self::close) or with the last clone and guard.
#[derive(Clone, Debug)]
pub struct RedisSingle {
    engine: Engine<RedisSingleBackend>,
}

impl RedisSingle {
    /// Connects, with default settings: `redis://[[user]:password@]host[:port][/database][?namespace=…]`,
    /// `redis-sentinel://…`, `redis-cluster://…`, and with TLS `rediss…`. See [`RedisSingleBuilder::url`].
    ///
    /// # Errors
    /// As for [`RedisSingleBuilder::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// To connect with other settings.
    pub fn builder() -> RedisSingleBuilder {
        RedisSingleBuilder::default()
    }

    /// Uses a client that the caller made, connected and will close, in the namespace `leasehold`.
    ///
    /// Give it a reconnection policy: by default it never comes back after a lost connection.
    pub fn from_client(client: Client) -> Self {
        Self::builder().borrowing(client).into()
    }

    /// What it promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        RedisSingleBackend::claims()
    }

    /// Ends it: guards are told [`Shutdown`](leasehold_core::LossReason::Shutdown), what they held is released, and
    /// the connection is closed if it is our own: within three times the
    /// [`command_timeout`](RedisSingleBuilder::command_timeout). See [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

impl RedisSingle {
    pub(crate) fn with(backend: RedisSingleBackend, settings: EngineOptions) -> Self {
        Self { engine: Engine::with(backend, settings) }
    }
}

impl From<RedisSingleBackend> for RedisSingle {
    fn from(backend: RedisSingleBackend) -> Self {
        Self::with(backend, EngineOptions::new())
    }
}

impl Backed for RedisSingle {
    type Backend = RedisSingleBackend;
    fn engine(&self) -> &Engine<RedisSingleBackend> {
        &self.engine
    }
}
