use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Attempt, Backend, Claim, GrantRef, LockKey, Mode};

/// Claims 32 keys at one moment, each for two owners, and answers the grants.
///
/// # Panics
/// If a key goes to both, or to none.
pub async fn claim_each_for_two(store: &impl Backend) -> Vec<GrantRef> {
    let claim = |number: usize| {
        let key = LockKey::new(format!("k/{}", number % 32)).expect("a key");
        Claim::new(&key, Mode::Exclusive, Duration::from_secs(60))
    };
    let claims: Vec<_> = (0..64).map(claim).collect();
    let attempts = join_all(claims.iter().map(|claim| store.try_acquire(claim))).await;
    let granted = claims.iter().zip(attempts).filter_map(|(claim, attempt)| match attempt.expect("an answer") {
        Attempt::Granted { epoch } => Some(claim.grant(epoch)),
        _ => None,
    });
    let granted: Vec<_> = granted.collect();
    let keys: HashSet<_> = granted.iter().map(|grant| &grant.key).collect();
    assert_eq!((granted.len(), keys.len()), (32, 32), "a key goes to both, or to none");
    granted
}
