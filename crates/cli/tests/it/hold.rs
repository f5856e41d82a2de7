//! `leasehold hold`: the lines of one client on standard input and output.

use std::collections::HashMap;
use std::fmt::Display;

use leasehold_testkit::test;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pages::is_like;
use crate::support::{Place, Running, redis};

/// Speaks with what answers in lines of JSON: with `hold`, an agent, or a program that uses one of the two.
pub(crate) trait Client {
    fn write(&mut self, bytes: &[u8]);
    fn read(&mut self) -> String;

    #[track_caller]
    fn says(&mut self, line: impl Display) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// The next line.
    #[track_caller]
    fn told(&mut self) -> Value {
        let line = self.read();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line:?}"))
    }

    /// The next line that is not about renewals and waiting.
    #[track_caller]
    fn answer(&mut self) -> Value {
        let is_answer = |line: &Value| ["until", "waiting", "wanted"].iter().all(|told| line.get(told).is_none());
        std::iter::repeat_with(|| self.told()).find(is_answer).unwrap()
    }

    #[track_caller]
    fn is_granted(&mut self) -> Value {
        let line = self.answer();
        assert!(line["held"].is_object(), "{line}");
        line["held"].clone()
    }

    /// It is told who holds what it waits for.
    #[track_caller]
    fn waits(&mut self) -> Value {
        let line = self.told();
        assert!(line["waiting"].is_object(), "{line}");
        line["waiting"]["holders"].clone()
    }

    /// The answer is an error of this kind.
    #[track_caller]
    fn is_refused(&mut self, kind: &str, retry: bool) {
        let answer = self.answer();
        assert!(answer["error"] == kind && answer["retry"] == retry, "{answer}");
        assert!(answer["message"].as_str().unwrap().len() < 1000, "{answer}");
    }
}

impl Client for Running {
    fn write(&mut self, bytes: &[u8]) {
        self.type_in(bytes);
    }

    #[track_caller]
    fn read(&mut self) -> String {
        self.line()
    }
}

/// Starts a program that serves its input.
#[track_caller]
fn start(place: &Place, args: &str) -> Running {
    let mut client = place.start(args);
    assert_eq!(client.told(), json!({"leasehold": 1}));
    client
}

/// After its input has ended, it exits with this code and says no more.
#[track_caller]
fn ends(client: Running, code: i32) {
    client.end().is(code, &[]).prints("");
}

#[test]
fn clients_are_told_what_the_page_says() {
    let page = include_str!("../../../../docs/agent.md");
    for dialogue in page.split("```dialogue\n").skip(1).filter_map(|rest| rest.split("\n```").next()) {
        let (place, mut clients) = (Place::file(), HashMap::new());
        for line in dialogue.lines() {
            let (name, rest) = line.split_once(' ').unwrap();
            if let Some(args) = rest.strip_prefix("runs leasehold ") {
                clients.insert(name, start(&place, args));
            } else if let Some(code) = rest.strip_prefix("ends with ") {
                ends(clients.remove(name).unwrap(), code.parse().unwrap());
            } else {
                take_part(clients.entry(name).or_insert_with(|| start(&place, "hold")), rest);
            }
        }
    }
}

/// What a client does or is told, as a dialogue says it.
#[track_caller]
fn take_part(client: &mut Running, line: &str) {
    match line.split_once(": ") {
        Some(("says", said)) => client.says(said),
        Some(("is told", shown)) => {
            // Where the machine is busy, one that does not wait for another is told of waiting, too.
            let is_meant = |told: &String| is_like(told, shown) || !told.starts_with("{\"waiting\"");
            let told = std::iter::repeat_with(|| client.read()).find(is_meant).unwrap();
            assert!(is_like(&told, shown), "{line}: {told}");
        }
        _ if line == "is killed" => client.signal(Signal::KILL),
        _ => panic!("no line of a dialogue: {line}"),
    }
}

#[test]
fn a_part_of_a_line_is_no_request() {
    let mut client = start(&Place::file(), "hold");
    client.type_in(br#"{"lock":"k"}"#);
    ends(client, 0);
}

#[test]
fn a_signal_to_it_alone_releases() {
    let place = Place::file();
    let mut client = start(&place, "hold k");
    client.is_granted();
    for of_a_terminal in [Signal::INT, Signal::QUIT, Signal::HUP] {
        client.signal(of_a_terminal);
    }
    client.says("{}");
    assert!(!place.is_free("k"), "its client got them, too, and has not ended yet");
    client.signal(Signal::TERM);
    assert_eq!(client.told(), json!({"lost": "shutdown"}));
    client.end_by_itself().is(143, &[]);
    assert!(place.is_free("k"));
}

#[test]
fn a_client_is_warned_when_the_store_does_not_renew_and_told_when_the_lease_is_over() {
    let (mut server, place) = redis("");
    let mut client = start(&place, "hold k --ttl 3s");
    client.is_granted();
    server.kill();
    let losing = client.answer();
    assert!(losing["losing"]["reason"] == "unreachable" && losing["losing"]["until"].is_f64(), "{losing}");
    assert_eq!(client.told(), json!({"lost": "unreachable"}));
}
