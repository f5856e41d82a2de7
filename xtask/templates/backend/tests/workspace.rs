//! The conformance suite on the store that `LEASEHOLD_TEST_NEW_STORE` names: by default, one on this machine.

use async_trait::async_trait;
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Capabilities, Result};
use leasehold_new_store::{NewStore, NewStoreBackend};

pub(crate) fn suite() -> Suite {
    let url = std::env::var("LEASEHOLD_TEST_NEW_STORE").unwrap_or_else(|_| "new-store://127.0.0.1".to_owned());
    Suite::exclusive([("", Server { url })])
}

