use leasehold_core::{Locks, Result, Target};

use crate::kinds::kind_of;

/// Connects to the store of a URL, whose scheme names the kind of store.
///
/// It asks the store once; [`connect_within`](leasehold_core::connect_within) tries again for as long as a caller waits. With
/// `reentrant:`, each call opens a session of its own. What else a URL may contain is in the README of each backend.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold::Result<()> {
/// use std::time::Duration;
/// use leasehold::{Wait, connect_within};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let url = format!("file:{}", directory.path().join("locks").display());
/// let locks = connect_within(Wait::UpTo(Duration::from_secs(20)), || leasehold::connect(&url)).await?;
/// # locks.close().await;
/// # Ok(()) }
/// ```
///
/// # Errors
/// Before anything is sent: [`Unsupported`](leasehold_core::ErrorKind::Unsupported) for the scheme of a feature that is not
/// built in, which it names, and [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) for an unknown scheme and for a
/// URL that its backend cannot use. [`Unavailable`](leasehold_core::ErrorKind::Unavailable) if the store cannot be reached, and
/// [`Backend`](leasehold_core::ErrorKind::Backend) if it refuses, such as a password. No error shows a password.
///
/// # Cancel safety
/// Dropping the future drops the connection that it opened.
pub async fn connect(url: &str) -> Result<Locks> {
    (kind_of(url)?.connect)(Target::new(url)).await
}
