use leasehold_core::{Kind, Locks};

use crate::locker::NewStore;

/// `new-store:`, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("new-store", &["new-store"], NewStore::claims, |target| {
    Box::pin(async move { NewStore::connect(target.url).await.map(Locks::exclusive) })
})
.package("leasehold-new-store")
.purpose("a new-store");
