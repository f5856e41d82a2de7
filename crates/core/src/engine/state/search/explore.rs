//! Breadth first through everything that can happen.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::encode::fingerprint;
use super::moves::Move;
use super::world::{Config, Property, Violation, World};

/// What a search came to.
pub(super) struct Found {
    pub(super) states: usize,
    /// After how many steps it ended.
    pub(super) depth: u16,
    /// Nothing is left that could happen.
    pub(super) complete: bool,
    /// How often each thing happened.
    pub(super) seen: BTreeMap<&'static str, u64>,
    pub(super) broken: Option<(Property, String)>,
}

/// One situation in this many is followed to its end.
pub(super) const SETTLED: u128 = 16;

/// Up to the first state in which a property does not hold, or to the bounds of the configuration.
pub(super) fn explore(config: &'static Config, states: usize, settled: u128) -> Found {
    let start = World::new(config);
    let mut known: HashSet<u128, BuildHasherDefault<Hashed>> = HashSet::default();
    known.insert(fingerprint(&start));
    let mut way: Vec<(u32, Move)> = vec![(0, Move::Tick)];
    let mut seen = BTreeMap::new();
    let mut frontier = vec![(0_u32, start)];
    let mut depth = 0;
    while !frontier.is_empty() && depth < config.depth && way.len() < states {
        let mut next = Vec::new();
        for (number, world) in frontier {
            if way.len() >= states {
                break;
            }
            for step in world.moves() {
                let mut then = world.clone();
                let result = carefully(|| then.take(step));
                for what in then.seen.drain(..) {
                    *seen.entry(what).or_default() += 1;
                }
                if let Err(violation) = result {
                    way.push((number, step));
                    return found(config, &way, depth, seen, Some(violation));
                }
                let print = fingerprint(&then);
                if !known.insert(print) {
                    continue;
                }
                way.push((number, step));
                if print.is_multiple_of(settled)
                    && let Err(violation) = carefully(|| then.settles())
                {
                    return found(config, &way, depth, seen, Some(violation));
                }
                next.push((u32::try_from(way.len() - 1).unwrap(), then));
            }
        }
        frontier = next;
        depth += 1;
    }
    let mut found = found(config, &way, depth, seen, None);
    found.complete = frontier.is_empty();
    found
}

pub(super) fn carefully(act: impl FnOnce() -> Result<(), Violation>) -> Result<(), Violation> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Violation { property: Property::Panic, what: what.unwrap_or_default() })
    })
}

fn found(
    config: &'static Config,
    way: &[(u32, Move)],
    depth: u16,
    seen: BTreeMap<&'static str, u64>,
    violation: Option<Violation>,
) -> Found {
    let broken = violation.map(|violation| (violation.property, format!("{}{}", violation.what, trace(config, way))));
    Found { states: way.len(), depth, complete: false, seen, broken }
}

thread_local! {
    /// Tell what happens as a situation is followed to its end.
    pub(super) static TELLS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// How it came to the last state.
fn trace(config: &'static Config, way: &[(u32, Move)]) -> String {
    let mut steps = Vec::new();
    let mut at = way.len() - 1;
    while at > 0 {
        steps.push(way[at].1);
        at = way[at].0 as usize;
    }
    let mut world = World::new(config);
    let mut text = format!(" (in \"{}\")", config.name);
    for step in steps.into_iter().rev() {
        let about = world.about(step);
        let result = carefully(|| world.take(step));
        let _ = write!(text, "\n  {step:?} {about}");
        if !world.seen.is_empty() {
            let _ = write!(text, ": {}", world.seen.join(", "));
        }
        if let Err(violation) = result {
            let _ = write!(text, "\n  {:?}: {}", violation.property, violation.what);
        }
    }
    if std::env::var_os("SHOW_SETTLE").is_some() {
        TELLS.set(true);
        let _ = carefully(|| world.settles());
        TELLS.set(false);
    }
    if std::env::var_os("SHOW_STATE").is_some() {
        let _ = write!(text, "\n  then {:#?}", world.sides);
    }
    text
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    #[allow(clippy::cast_possible_truncation, reason = "the lower half will do")]
    fn write_u128(&mut self, print: u128) {
        self.0 = print as u64;
    }
}
