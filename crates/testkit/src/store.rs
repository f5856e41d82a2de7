use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use leasehold_core::conformance::Fixture;
use leasehold_core::{Backend, Capabilities, Result};

/// The fixture of a conformance suite on the store whose URL an environment variable has.
pub struct Store<B> {
    variable: &'static str,
    capabilities: Capabilities,
    connect: Connect<B>,
    prepare: Option<Prepare>,
    steps_are_atomic: bool,
    signals_in_turn: bool,
}

type Connect<B> = Arc<dyn Fn(String, String) -> BoxFuture<'static, Result<B>> + Send + Sync>;
type Prepare = fn(String) -> BoxFuture<'static, Result<()>>;

impl<B: Backend> Store<B> {
    /// The store that this variable names. `connect` gets its URL, and the namespace of a client.
    pub fn named_by(
        variable: &'static str,
        capabilities: Capabilities,
        connect: impl Fn(String, String) -> BoxFuture<'static, Result<B>> + Send + Sync + 'static,
    ) -> Self {
        let connect = Arc::new(connect);
        Self { variable, capabilities, connect, prepare: None, steps_are_atomic: true, signals_in_turn: false }
    }

    /// Says what is made there before the cases.
    #[must_use]
    pub fn prepared(self, prepare: Prepare) -> Self {
        Self { prepare: Some(prepare), ..self }
    }

    /// Says that [steps are not atomic](Fixture::steps_are_atomic).
    #[must_use]
    pub fn steps_are_not_atomic(self) -> Self {
        Self { steps_are_atomic: false, ..self }
    }

    /// Says whether [signals mean a turn](Fixture::signals_in_turn).
    #[must_use]
    pub fn signals_in_turn(self, signals_in_turn: bool) -> Self {
        Self { signals_in_turn, ..self }
    }

    fn url(&self) -> std::result::Result<String, String> {
        std::env::var(self.variable).map_err(|_| format!("{} is not set", self.variable))
    }
}

impl<B> fmt::Debug for Store<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.variable).finish()
    }
}

#[async_trait]
impl<B: Backend> Fixture for Store<B> {
    type Backend = B;

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn available(&self) -> std::result::Result<(), String> {
        let url = self.url()?;
        let prepared = match self.prepare {
            Some(prepare) => prepare(url).await,
            None => match self.connect("leasehold-conformance").await {
                Ok(store) => {
                    store.close().await;
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        // `Debug` says the cause, too.
        prepared.map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<B> {
        (self.connect)(self.url().unwrap_or_default(), namespace.to_owned()).await
    }

    fn steps_are_atomic(&self) -> bool {
        self.steps_are_atomic
    }

    fn signals_in_turn(&self) -> bool {
        self.signals_in_turn
    }
}
