use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use leasehold_core::Moment;

use crate::nodes::locked;

/// The leases of etcd that were given back by grants of this process, for grants to come: a new lease is a write to the disks of a
/// majority, and so is its end.
///
/// A lease is here only if no entry has it, and no request that may still be carried out gives it to one.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By their lengths in seconds, each with the moment at which it was given back. The last is the last.
    idle: HashMap<i64, Vec<(i64, Moment)>>,
    /// Whether somebody gives back to etcd what is not used.
    swept: bool,
    /// When those requests were sent that granted a lease or kept it alive, if that is not long ago.
    alive: HashMap<i64, Moment>,
    /// How many there may be in `alive` before those are looked for that count no more.
    most: usize,
}

/// By how much a lease lasts longer than was asked for. For so long after it was granted or kept alive it can be given to a new grant
/// as it is, and lasts at least as long as that one asked for, from then on.
pub(crate) const SPARE: Duration = Duration::from_secs(1);

/// A lease for a new grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    pub(crate) id: i64,
    /// Whether it lasts long enough as it is. Else it has to be kept alive first, and may have ended.
    pub(crate) lasts: bool,
}

impl Leases {
    /// A lease of so many seconds, which is nobody else's from now on.
    pub(crate) fn take(&self, ttl: i64, now: Moment) -> Option<Idle> {
        let mut known = locked(&self.0);
        let (id, _) = known.idle.get_mut(&ttl)?.pop()?;
        let lasts = known.alive.get(&id).is_some_and(|alive| now.since(*alive) <= SPARE);
        Some(Idle { id, lasts })
    }

    /// Takes a lease back. Answers whether it is for the caller to look for [unused](Self::unused) ones from now on.
    pub(crate) fn give(&self, id: i64, ttl: i64, now: Moment) -> bool {
        let mut known = locked(&self.0);
        known.idle.entry(ttl).or_default().push((id, now));
        !std::mem::replace(&mut known.swept, true)
    }

    /// Those that nobody took for [`SPARE`]: they are here no more. `None`: there are none at all, and the caller need not look again.
    pub(crate) fn unused(&self, now: Moment) -> Option<Vec<i64>> {
        let mut known = locked(&self.0);
        known.idle.retain(|_, idle| !idle.is_empty());
        known.swept = !known.idle.is_empty();
        let is_unused = |(_, given): &mut (i64, Moment)| now.since(*given) > SPARE;
        known.swept.then(|| {
            known.idle.values_mut().flat_map(|idle| idle.extract_if(.., is_unused).map(|(id, _)| id)).collect()
        })
    }

    /// All of them, which are here no more.
    pub(crate) fn all(&self) -> Vec<i64> {
        locked(&self.0).idle.drain().flat_map(|(_, idle)| idle).map(|(id, _)| id).collect()
    }

    /// Forgets the leases of this length: one of them had ended, and all others were given back before it.
    pub(crate) fn forget(&self, ttl: i64) {
        locked(&self.0).idle.remove(&ttl);
    }

    /// Notes that a lease was granted or kept alive by a request that was sent at this moment.
    pub(crate) fn was_alive(&self, id: i64, sent: Moment, now: Moment) {
        let known = &mut *locked(&self.0);
        known.alive.insert(id, sent);
        if known.alive.len() > known.most {
            known.alive.retain(|_, alive| now.since(*alive) <= SPARE);
            known.most = known.alive.len() * 2 + 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::Clock;

    use super::*;

    #[test]
    fn a_lease_lasts_as_it_is_only_shortly_after_it_was_alive() {
        let (leases, clock) = (Leases::default(), Clock::system());
        let sent = clock.now();
        assert_eq!(leases.take(31, sent), None);
        leases.was_alive(7, sent, sent);
        assert!(leases.give(7, 31, sent));
        assert_eq!(leases.take(30, sent), None, "it has another length");
        assert_eq!(leases.take(31, sent.plus(SPARE)), Some(Idle { id: 7, lasts: true }));
        assert_eq!(leases.take(31, sent), None, "it is somebody's");
        assert!(!leases.give(7, 31, sent), "somebody looks for those that are unused");
        let late = sent.plus(SPARE + Duration::from_nanos(1));
        assert_eq!(leases.take(31, late), Some(Idle { id: 7, lasts: false }));
    }

    #[test]
    fn what_is_known_of_leases_that_never_come_back_is_forgotten() {
        let (leases, clock) = (Leases::default(), Clock::system());
        let mut now = clock.now();
        for id in 0..10_000 {
            now = now.plus(SPARE / 10);
            leases.was_alive(id, now, now);
            assert!(locked(&leases.0).alive.len() < 200);
        }
    }
}
