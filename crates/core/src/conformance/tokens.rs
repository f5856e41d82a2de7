//! A check for tests of backends: tokens grow also when the store forgets its counter.

use std::time::Duration;

use crate::{Clock, FencingToken};

/// Checks that the tokens of a busy key grow also when the store forgets its counter.
///
/// For two seconds `grant` is called as often as possible: it acquires and releases the key and returns the token, or `None`
/// if the key was not granted. Then `forgets` makes the store forget everything, and returns the next token.
///
/// # Errors
/// The errors of `grant` and `forgets`.
///
/// # Panics
/// If the last token is not the largest.
pub async fn tokens_grow_although_all_is_forgotten<E>(
    mut grant: impl AsyncFnMut() -> Result<Option<FencingToken>, E>,
    forgets: impl AsyncFnOnce() -> Result<Option<FencingToken>, E>,
) -> Result<(), E> {
    let (clock, mut newest) = (Clock::system(), None);
    let end = clock.now().plus(Duration::from_secs(2));
    while clock.now() < end {
        newest = grant().await?.or(newest);
    }
    let next = forgets().await?;
    assert!(next > newest, "{next:?} after {newest:?}");
    Ok(())
}
