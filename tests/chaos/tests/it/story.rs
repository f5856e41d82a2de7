//! Histories written by hand: a line is a client, a moment in milliseconds, and what happened.
//!
//! A line that begins with `+` is in the bad history only, and one with `-` in the good one only: so each story shows what
//! makes the difference.

use std::collections::BTreeMap;

use leasehold_chaos::history::{Event, History, Mode, NEMESIS, Phase, Record, Target};

pub(crate) fn good(story: &str) -> History {
    told(story, '-')
}

pub(crate) fn bad(story: &str) -> History {
    told(story, '+')
}

fn told(story: &str, taken: char) -> History {
    let lines = story.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.filter_map(|line| match line.strip_prefix(['+', '-']) {
        Some(rest) => line.starts_with(taken).then_some(rest),
        None => Some(line),
    });
    let mut ops: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut last = 0;
    History::of(lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (who, at, what, rest) = (words[0], number(words[1]), words[2], &words[3..]);
        let (client, task) = client(who);
        let op = ops.entry((client, task)).or_default();
        if ["call", "attach"].contains(&what) {
            last += 1;
            *op = last;
        }
        Record { at: at * 1_000_000, client, task, op: *op, event: event(what, rest) }
    }))
}

/// `c1`, `c1.2` with a task, or `nemesis`.
fn client(who: &str) -> (u32, u32) {
    let Some(who) = who.strip_prefix('c') else { return (NEMESIS, 0) };
    let (client, task) = who.split_once('.').unwrap_or((who, "0"));
    (client.parse().unwrap(), task.parse().unwrap())
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn event(what: &str, rest: &[&str]) -> Event {
    let given = |name: &str| rest.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(number);
    let value = |at: usize| rest.get(at).filter(|word| **word != "none").map(|word| number(word));
    let text = |at: usize| rest[at].to_owned();
    let small = |number: u64| u32::try_from(number).unwrap();
    match what {
        "call" | "attach" => Event::Called {
            key: text(0),
            mode: if rest.contains(&"shared") { Mode::Shared } else { Mode::Exclusive },
            wait_ms: given("wait"),
            session: given("session").map(small),
            attach: what == "attach",
        },
        "granted" => Event::Granted { token: number(rest[0]), lease_ms: given("ttl").unwrap_or(1000) },
        "refused" => Event::Refused { error: text(0) },
        "held" => Event::Held {},
        "releasing" => Event::ReleaseCalled {},
        "released" => Event::Released { ok: true },
        "gone" => Event::Released { ok: false },
        "failed" => Event::ReleaseFailed { error: text(0) },
        "lost" => Event::Lost {
            reason: if rest.contains(&"capped") { "max_hold" } else { "unreachable" }.into(),
            deadline_overdue_ms: given("late"),
            resumed: rest.contains(&"resumed"),
        },
        "detached" => Event::Detached {},
        "write" => Event::WriteCalled { register: text(0), token: given("token"), value: number(rest[1]) },
        "wrote" => Event::WriteAccepted { previous: value(0) },
        "fenced" => Event::WriteRefused {},
        "dark" => Event::WriteUnknown {},
        "read" => Event::ReadCalled { register: text(0), token: given("token") },
        "saw" => Event::Read { value: value(0), token: given("fence") },
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
        Some(("link", link)) => Target::Link(link.to_owned()),
        Some((_, server)) => Target::Server(server.to_owned()),
        None => Target::Client(client(word).0),
    }
}
