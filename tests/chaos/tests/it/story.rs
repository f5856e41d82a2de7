//! Histories written by hand: a line is a client, a moment in milliseconds, and what happened. The files in `histories/` tell of
//! good ones beside bad ones that differ from them by a line or two.
//!
//! A line that begins with `-` is in the good history only, and one with `+` or a digit in the bad one of that sign only: so each
//! story shows what makes the difference. What begins with neither a client nor the nemesis is said to people.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_chaos::history::{Event, History, Mode, NEMESIS, Phase, Record, Target};
use leasehold_chaos::register::Answer;

/// A story of a file.
pub(crate) struct Story {
    pub(crate) name: String,
    /// The rules that the bad histories break.
    pub(crate) finds: Vec<String>,
    /// Figures of the good history.
    pub(crate) measures: Vec<(String, serde_json::Value)>,
    pub(crate) good: History,
    pub(crate) bad: Vec<History>,
}

/// The stories of a file: each begins with a line `== NAME`.
pub(crate) fn stories(file: &str) -> impl Iterator<Item = Story> {
    file.split("\n== ").skip(1).map(|text| {
        let all = |word: &'static str| text.lines().filter_map(move |line| line.strip_prefix(word));
        let finds: Vec<String> = all("finds ").flat_map(|rules| rules.split(", ")).map(str::to_owned).collect();
        let measures = all("measures ").map(|figure| figure.split_once(' ').unwrap());
        let measures = measures.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect();
        let mut signs: BTreeSet<char> = text.lines().filter_map(sign).filter(|sign| *sign != '-').collect();
        if signs.is_empty() && !finds.is_empty() {
            // What is bad is that lines of the good history are missing.
            signs.insert('+');
        }
        let bad = signs.into_iter().map(|sign| told(text, sign)).collect();
        Story { name: text.lines().next().unwrap().to_owned(), finds, measures, good: told(text, '-'), bad }
    })
}

fn sign(line: &str) -> Option<char> {
    line.chars().next().filter(|sign| ['-', '+'].contains(sign) || sign.is_ascii_digit())
}

/// The history that has the lines of this sign, and those without one.
pub(crate) fn told(story: &str, taken: char) -> History {
    let lines = story.lines().map(str::trim).filter(|line| sign(line).is_none_or(|sign| sign == taken));
    let lines = lines.map(|line| line.trim_start_matches(|first: char| Some(first) == sign(line)));
    let mut ops: BTreeMap<(u32, u32), [u64; 2]> = BTreeMap::new();
    let mut last = 0;
    History::of(lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let (who, rest) = (words.next()?, words.collect::<Vec<&str>>());
        let (client, task) = client(who)?;
        let op = ops.entry((client, task)).or_default();
        if ["call", "attach"].contains(&rest[1]) {
            last += 1;
            *op = [op[1], last];
        }
        // `c1'` is the op before.
        let op = op[usize::from(!who.ends_with('\''))];
        Some(Record { at: number(rest[0]) * 1_000_000, client, task, op, event: event(rest[1], &rest[2..]) })
    }))
}

/// `c1`, `c1.2` with a task, or `nemesis`.
fn client(who: &str) -> Option<(u32, u32)> {
    if who == "nemesis" {
        return Some((NEMESIS, 0));
    }
    let who = who.strip_prefix('c')?.trim_end_matches('\'');
    let (client, task) = who.split_once('.').unwrap_or((who, "0"));
    Some((client.parse().ok()?, task.parse().ok()?))
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn event(what: &str, rest: &[&str]) -> Event {
    let given = |name: &str| rest.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(number);
    let value = |at: usize| rest.get(at).filter(|word| **word != "none").map(|word| number(word));
    let text = |at: usize| rest[at].to_owned();
    let answered = |answer| Event::Answered { answer };
    match what {
        "call" | "attach" => Event::Called {
            key: text(0),
            mode: if rest.contains(&"shared") { Mode::Shared } else { Mode::Exclusive },
            wait_ms: given("wait"),
            session: given("session").map(|session| u32::try_from(session).unwrap()),
            attach: what == "attach",
        },
        "granted" => Event::Granted { token: number(rest[0]), lease_ms: given("ttl").unwrap_or(1000) },
        "refused" => Event::Refused { error: text(0) },
        "held" => Event::Held {},
        "releasing" => Event::ReleaseCalled {},
        "released" | "gone" => Event::Released { ok: what == "released" },
        "failed" => Event::ReleaseFailed { error: text(0) },
        "lost" => Event::Lost {
            reason: if rest.contains(&"capped") { "max_hold" } else { "unreachable" }.into(),
            deadline_overdue_ms: given("late"),
            resumed: rest.contains(&"resumed"),
        },
        "detached" => Event::Detached {},
        "write" | "read" => Event::Asked {
            register: text(0),
            token: given("token"),
            writes: if what == "write" { value(1) } else { None },
        },
        "wrote" => answered(Answer::Wrote { previous: value(0) }),
        "saw" => answered(Answer::Read { value: value(0) }),
        "fenced" => answered(Answer::Refused),
        "dark" => answered(Answer::Unknown),
        "begins" | "ends" => Event::Fault {
            fault: text(0),
            target: target(rest[1]),
            phase: if what == "ends" { Phase::Ended } else { Phase::Began },
            proved: given("proved").unwrap_or(u64::from(what == "ends")),
        },
        _ => panic!("{what} is no event"),
    }
}

fn target(word: &str) -> Target {
    match word.split_once('=') {
        Some(("key", key)) => Target::Key(key.to_owned()),
        Some((_, server)) => Target::Server(server.to_owned()),
        None => Target::Client(client(word).unwrap().0),
    }
}
