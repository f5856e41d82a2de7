//! Which lease fits a store, from how long its round trips take.

use std::time::Duration;

/// A lease that is renewed from a third on has two thirds left for the renewal. This many slow round trips in a lease leave room
/// for twenty of them, one after the other.
const ROUND_TRIPS: u32 = 30;

/// The shortest lease that is advised: a busy machine may leave a process without processor time for longer than the network takes.
const SHORTEST: Duration = Duration::from_secs(2);

/// The option with the shortest lease to advise where a slow round trip takes so long: thirty of them, in whole seconds, and 2 s at least.
pub(crate) fn ttl_option(round_trip: Duration) -> String {
    let fits = round_trip.saturating_mul(ROUND_TRIPS).max(SHORTEST);
    format!("--ttl {}s", fits.as_secs().saturating_add(u64::from(fits.subsec_nanos() > 0)))
}
