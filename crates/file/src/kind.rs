use leasehold_core::{Kind, Locks};

use crate::examination::examine;
use crate::locker::FileLocks;

/// `file:`, for programs that find their store by the scheme of a URL.
pub const KIND: Kind = Kind::new("file", &["file"], FileLocks::claims, |target| {
    Box::pin(async move { FileLocks::connect(target.url).await.map(Locks::shared) })
})
.package("leasehold-file")
.purpose("processes of one machine, no server")
.examine(|url| Box::pin(async move { examine(url) }))
.cure("make it possible to write there, or name another directory");
