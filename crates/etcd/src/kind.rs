use leasehold_core::{Kind, Locks};

use crate::examination::examine;
use crate::locker::Etcd;

/// `etcd:`, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("etcd", &["etcd", "etcds"], Etcd::claims, |target| {
    Box::pin(async move { Etcd::connect(target.url).await.map(Locks::shared) })
})
.package("leasehold-etcd")
.purpose("an etcd cluster, for exclusion that survives the loss of a server, with readers beside writers")
.takes_password()
.examine(|url| Box::pin(examine(url)))
.cure("give the user read and write rights on the prefix of the namespace: see \"Server requirements\" in the store's README");
