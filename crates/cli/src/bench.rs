use std::cell::Cell;
use std::fmt::Write;
use std::time::Duration;

use futures::TryStreamExt;
use futures::stream::FuturesUnordered;
use leasehold::{Admin, Capability, LockKey, LockOptions, Locker, LockerExt, Locks, Wait};
use serde::Serialize;
use tokio::task::yield_now;

use crate::admin::print;
use crate::args::StoreArgs;
use crate::choice::{Purpose, choose, close};
use crate::exit::Failure;
use crate::lease_advice::ttl_option;
use crate::signals::Signals;
use crate::stopwatch::Stopwatch;
use crate::store_commands::BenchArgs;
use crate::wording::json;

/// How many tasks lock keys of their own at a time.
const TASKS: usize = 16;

/// How long one lock may be waited for. Nobody else wants these keys.
const PATIENCE: Duration = Duration::from_secs(5);

/// `leasehold bench`: measures a store, and says which lease fits it.
pub(crate) async fn bench(args: &BenchArgs, store: &StoreArgs) -> Result<u8, Failure> {
    if store.session.is_some() {
        return Err(Failure::Usage("bench hands locks from one owner to another: leave --session out".to_owned()));
    }
    let named = args.url.as_ref().or(store.backend.as_ref()).cloned();
    let choice = choose(&StoreArgs { backend: named, password_file: store.password_file.clone(), session: None })?;
    let mut signals = Signals::catch()?;
    let connected =
        async { Ok::<_, Failure>([choice.connect(Purpose::Lock).await?, choice.connect(Purpose::Lock).await?]) };
    let stores = signals.or(connected).await??;
    let measured = signals.or(measure(&stores, Duration::from_secs(args.seconds))).await;
    for store in &stores {
        close(store).await;
    }
    let figures = measured??;
    let report = Report { backend: choice.shown(), advice: advice(&figures), figures };
    print(&if args.json { json(&report) } else { report.lines() })?;
    Ok(0)
}

/// What was measured. Times are in microseconds.
#[derive(Debug, Serialize)]
struct Figures {
    /// A question about a key that nobody holds.
    round_trip: Spread,
    /// Locks taken and released in a second by one task on one key.
    cycles_one_key: u64,
    /// The same by sixteen tasks, each on a key of its own.
    cycles_many_keys: u64,
    /// From the beginning of a release until another connection has the lock that it waits for.
    handoff: Option<Spread>,
    /// The same between two tasks on one connection.
    local_handoff: Option<Spread>,
    /// Whether the store has leases.
    #[serde(skip)]
    has_leases: bool,
}

/// The middle of some times, and what one in a hundred exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Spread {
    p50: u64,
    p99: u64,
}

impl Spread {
    /// `None` without a time.
    fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(place).map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
        };
        Some(Self { p50: at(50)?, p99: at(99)? })
    }
}

/// Measures for about so long, in five equal parts.
async fn measure(stores: &[Locks; 2], whole: Duration) -> Result<Figures, Failure> {
    let part = whole / 5;
    let key = |name: &str| LockKey::new(format!("leasehold bench/{}/{name}", std::process::id()));
    let [here, there] = stores;
    let between = handoff([here, there], key("hand-off")?, part).await?;
    // Two tasks with one session would hold the lock side by side.
    let within = if here.capabilities().has(Capability::Reentrancy) {
        None
    } else {
        handoff([here, here], key("local")?, part).await?
    };
    let one = key("one")?;
    let cycles_one_key = cycles(here, std::slice::from_ref(&one), part).await?;
    let keys = (0..TASKS).map(|number| key(&number.to_string())).collect::<Result<Vec<_>, _>>()?;
    let cycles_many_keys = cycles(here, &keys, part).await?;
    let (began, mut times) = (Stopwatch::start(), Vec::new());
    while times.is_empty() || began.read() < part {
        let asked = Stopwatch::start();
        here.inspect(&one).await?;
        times.push(asked.read());
        // A store on this machine may never let others, and signals, have their turn.
        yield_now().await;
    }
    let round_trip = Spread::of(times).unwrap_or(Spread { p50: 0, p99: 0 });
    let has_leases = here.capabilities().has(Capability::Lease);
    Ok(Figures { round_trip, cycles_one_key, cycles_many_keys, handoff: between, local_handoff: within, has_leases })
}

/// How often a second these keys are locked and released, each by a task of its own.
async fn cycles(store: &Locks, keys: &[LockKey], part: Duration) -> Result<u64, Failure> {
    let began = Stopwatch::start();
    let again_and_again = async |key| {
        let mut done = 0;
        while began.read() < part {
            let Some(guard) = store.acquire(key, &options()).await? else { break };
            guard.release().await?;
            done += 1;
            yield_now().await;
        }
        Ok::<u64, leasehold::Error>(done)
    };
    let tasks: FuturesUnordered<_> = keys.iter().map(again_and_again).collect();
    let all: u64 = tasks.try_collect::<Vec<_>>().await?.into_iter().sum();
    let micros = began.read().as_micros().max(1);
    Ok(u64::try_from(u128::from(all) * 1_000_000 / micros).unwrap_or(u64::MAX))
}

/// How long a lock takes from one of two waiters to the other.
async fn handoff(stores: [&Locks; 2], key: LockKey, part: Duration) -> Result<Option<Spread>, Failure> {
    let began = Stopwatch::start();
    // Who released last, and when it began to.
    let last: Cell<Option<(usize, Duration)>> = Cell::default();
    let takes_turns = async |(who, store): (usize, &Locks)| {
        let mut times = Vec::new();
        while began.read() < part {
            let asked = began.read();
            let Some(guard) = store.acquire(&key, &options()).await? else { break };
            let now = began.read();
            // Only who waited already was handed something.
            if let Some((_, released)) = last.take().filter(|(other, released)| *other != who && *released > asked) {
                times.push(now.saturating_sub(released));
            }
            // Time for the other to come and wait.
            tokio::time::sleep(Duration::from_millis(2)).await;
            last.set(Some((who, began.read())));
            guard.release().await?;
            // It is the other's turn, also where waiters do not queue.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok::<Vec<Duration>, leasehold::Error>(times)
    };
    let tasks: FuturesUnordered<_> = stores.into_iter().enumerate().map(takes_turns).collect();
    Ok(Spread::of(tasks.try_concat().await?))
}

fn options() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(PATIENCE)).label("leasehold bench")
}

/// The figures of a store, whose name has no credentials, as in the JSON output.
#[derive(Serialize)]
struct Report {
    backend: String,
    #[serde(flatten)]
    figures: Figures,
    advice: Vec<String>,
}

impl Report {
    fn lines(&self) -> String {
        let Figures { round_trip, cycles_one_key, cycles_many_keys, handoff, local_handoff, .. } = &self.figures;
        let spread = |spread: &Spread| format!("{} (one in a hundred: {} or more)", told(spread.p50), told(spread.p99));
        let or_none = |of: &Option<Spread>| of.as_ref().map_or_else(|| "none came".to_owned(), spread);
        let mut text = format!("store            {}\nround trip       {}\n", self.backend, spread(round_trip));
        let _ = writeln!(text, "lock, release    {cycles_one_key} a second on one key");
        let _ = writeln!(text, "                 {cycles_many_keys} a second by {TASKS} tasks on a key each");
        let _ = writeln!(text, "hand-off         {} between connections", or_none(handoff));
        let _ = writeln!(text, "                 {} within one", or_none(local_handoff));
        for advice in &self.advice {
            let _ = writeln!(text, "advice           {advice}");
        }
        text
    }
}

/// A time in microseconds, for people.
fn told(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Which lease and which options fit these figures.
fn advice(figures: &Figures) -> Vec<String> {
    let mut advice = Vec::new();
    if figures.has_leases {
        let option = ttl_option(Duration::from_micros(figures.round_trip.p99));
        advice.push(format!("{option} or more: thirty times what one round trip in a hundred takes, and 2 s at least"));
    }
    if let (Some(over), Some(local)) = (figures.handoff, figures.local_handoff)
        && over.p50 > local.p50.saturating_mul(4)
    {
        advice.push(format!(
            "let waiters of one process share a locker: the local hand-off takes {}, and one between connections {}",
            told(local.p50),
            told(over.p50)
        ));
    }
    if figures.cycles_many_keys > figures.cycles_one_key.saturating_mul(4) {
        advice.push("take several keys at a time through one connection: they share its round trips".to_owned());
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_of_times_that_were_measured() {
        let of = |millis: &[u64]| Spread::of(millis.iter().map(|millis| Duration::from_millis(*millis)).collect());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3]), Some(Spread { p50: 3000, p99: 3000 }));
        assert_eq!(of(&[4, 1, 3, 2]), Some(Spread { p50: 2000, p99: 4000 }));
        assert_eq!(of(&(1..=100).collect::<Vec<_>>()), Some(Spread { p50: 50_000, p99: 99_000 }));
    }

    #[test]
    fn what_is_advised_follows_from_the_figures() {
        let spread = |micros| Spread { p50: micros, p99: micros * 2 };
        let even = Figures {
            round_trip: spread(50_000),
            cycles_one_key: 10,
            cycles_many_keys: 40,
            handoff: Some(spread(4)),
            local_handoff: Some(spread(1)),
            has_leases: true,
        };
        let said = advice(&even);
        assert!(said.len() == 1 && said[0].starts_with("--ttl 3s or more"), "{said:?}");
        let uneven = Figures { cycles_many_keys: 41, handoff: Some(spread(5)), has_leases: false, ..even };
        let said = advice(&uneven);
        assert!(said.len() == 2 && said[0].contains("local hand-off") && said[1].contains("several keys"), "{said:?}");
    }

    #[test]
    fn times_are_told_in_the_unit_that_matters() {
        assert_eq!([7, 1_550, 2_340_000].map(told), ["7 µs", "1.5 ms", "2.3 s"]);
    }
}
