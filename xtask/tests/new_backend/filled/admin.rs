use leasehold_core::{Backend, Cursor, Holders, LockKey, Page, Result};

use crate::store::Store;

pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    store.memory()?.inspect(key).await
}

pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    store.memory()?.list(prefix, after).await
}

pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    store.memory()?.force_release(key, only).await
}
