//! The conformance suite on the store that `LEASEHOLD_TEST_NEW_STORE` names: by default, one on this machine.

use std::process::ExitCode;

use async_trait::async_trait;
use leasehold_core::conformance::{self, Fixture};
use leasehold_core::{Capabilities, Result};
use leasehold_new_store::{NewStore, NewStoreBackend};

fn main() -> ExitCode {
    let url = std::env::var("LEASEHOLD_TEST_NEW_STORE").unwrap_or_else(|_| "new-store://127.0.0.1".to_owned());
    conformance::exclusive(Server { url })
}

struct Server {
    url: String,
}

#[async_trait]
impl Fixture for Server {
    type Backend = NewStoreBackend;

    fn capabilities(&self) -> Capabilities {
        NewStore::claims()
    }

    /// Where there is no store, every case is ignored for this reason, and the run is a success. In CI, set
    /// `LEASEHOLD_CONFORMANCE_REQUIRED=1`: then it is a failure.
    async fn available(&self) -> std::result::Result<(), String> {
        let connected = NewStore::builder().url(&self.url).backend().await;
        // `Debug` shows the cause, too, such as "connection refused".
        connected.map(drop).map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<NewStoreBackend> {
        NewStore::builder().url(&self.url).namespace(namespace).backend().await
    }
}
