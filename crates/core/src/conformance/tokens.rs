//! A check for tests of backends: tokens grow also when the store forgets its counter.

use std::time::Duration;

use super::ahead_of_the_clock;
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
/// If the last token is not the largest. The test is ignored on a machine too slow for the counter to outrun the clock.
pub async fn tokens_grow_although_all_is_forgotten<E>(
    mut grant: impl AsyncFnMut() -> Result<Option<FencingToken>, E>,
    forgets: impl AsyncFnOnce() -> Result<Option<FencingToken>, E>,
) -> Result<(), E> {
    let (clock, mut grants, mut newest) = (Clock::system(), 0, None);
    let begun = clock.now();
    let end = begun.plus(Duration::from_secs(2));
    while clock.now() < end {
        if let Some(token) = grant().await? {
            (grants, newest) = (grants + 1, Some(token));
        }
    }
    let took = clock.now().since(begun);
    let next = forgets().await?;
    ahead_of_the_clock(grants, took);
    assert!(next > newest, "{next:?} after {newest:?}");
    Ok(())
}
