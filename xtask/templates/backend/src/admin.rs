use leasehold_core::{Cursor, Holders, LockKey, Page, Result};

use crate::store::Store;

/// Who holds a key: one holder with mode, token, remaining lease, label and reason, or none if the key is free or its lease has
/// ended. `Holders::new` and `Holder::of_epoch` make them: the epoch tells the token, and when the lease was granted.
pub(crate) async fn inspect(store: &Store, key: &LockKey) -> Result<Holders> {
    store.not_written("inspect", key.as_str()).await
}

/// A page of the held keys that start with `prefix` and come after `after`, in the order of their bytes.
///
/// A page has about 100 keys. Its cursor is the last key, and `None` where no key comes behind it. Every character of the prefix
/// stands for itself. A store without an index of its keys has to keep one, in the steps that grant and release.
pub(crate) async fn list(store: &Store, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
    let _ = after;
    store.not_written("list", prefix).await
}

/// Frees a key, whoever holds it, and answers who held it; with `only`, ends the grant with this epoch alone, if it is there.
///
/// One atomic step. The epoch stays, so that later tokens grow.
pub(crate) async fn force_release(store: &Store, key: &LockKey, only: Option<u64>) -> Result<Holders> {
    let _ = only;
    store.not_written("force_release", key.as_str()).await
}
