//! A check for tests of backends: tokens grow also when the store forgets its counter.

use std::time::Duration;

use super::ahead_of_the_clock;
use crate::{Clock, FencingToken};

/// Whether the tokens of a busy key grow also when its counter is forgotten.
///
/// For two seconds `grant` takes the key and gives it back as fast as it can, each time with its token, or `None` if it was
/// not granted. Then `forgets` has the store forget all, and answers with the token that comes next.
///
/// # Errors
/// Those of `grant` and `forgets`.
///
/// # Panics
/// If that token is not the largest. A machine on which the counter does not outrun the clock shows nothing.
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
