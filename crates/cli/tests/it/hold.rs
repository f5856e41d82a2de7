//! `leasehold hold`: the lines of one client on standard input and output.

use std::fmt::Display;

use leasehold_testkit::test;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Place, Running, ended, leasehold, redis};

/// The client of a server that speaks in lines of JSON: of `hold`, or of an agent.
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
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a line of the server: {line:?}"))
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

    #[track_caller]
    fn releases(&mut self) {
        self.says(r#"{"release":true}"#);
        assert_eq!(self.answer(), json!({"released": true}));
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

/// Starts `hold` with these arguments.
#[track_caller]
fn hold(place: &Place, args: &str) -> Running {
    let mut client = place.start(&format!("hold {args}"));
    assert_eq!(client.told(), json!({"leasehold": 1}));
    client
}

/// The same for one that asks by a line.
#[track_caller]
fn asks(place: &Place, request: &Value) -> Running {
    let mut client = hold(place, "");
    client.says(request);
    client
}

/// After its input has ended, it exits with this code and says no more.
#[track_caller]
fn ends(client: Running, code: i32) {
    client.end().is(code, &[]).prints("");
}

#[test]
fn a_key_of_the_command_line_is_held_until_the_input_ends() {
    let place = Place::file();
    let mut client = hold(&place, "k --label ada");
    let held = client.is_granted();
    assert!(held["token"].as_u64().unwrap() > 0 && held["token"] == held["tokens"]["k"]);
    assert_eq!(held["until"], Value::Null, "files have no lease");
    assert!(!place.is_free("k"));
    ends(client, 0);
    assert!(place.is_free("k"));
    for bad in ["hold -n", "hold -n -w 1s k"] {
        assert_eq!(place.code(bad), 64, "{bad}");
    }
}

#[test]
fn a_client_asks_by_a_line_and_releases_by_another() {
    let place = Place::file();
    let mut client = asks(&place, &json!({"lock": "k", "reason": "r", "a field of later": [1]}));
    client.is_granted();
    assert!(!place.is_free("k"));
    let mut waiter = asks(&place, &json!({"lock": "k"}));
    // A waiter can give up.
    for client in [&mut waiter, &mut client] {
        client.says("{}");
        client.releases();
    }
    ends(waiter, 0);
    ends(client, 0);
    assert!(place.is_free("k"));
}

#[test]
fn a_waiter_is_told_who_holds_it_and_is_granted_it_when_that_one_is_killed() {
    let place = Place::file();
    let mut holder = hold(&place, "k --label ada");
    holder.is_granted();
    let mut busy = hold(&place, "k -n");
    assert_eq!(busy.told()["busy"]["holders"][0]["label"], "ada");
    ends(busy, 75);
    let mut waiter = asks(&place, &json!({"lock": "k"}));
    assert_eq!(waiter.waits()[0]["label"], "ada");
    holder.signal(Signal::KILL);
    waiter.is_granted();
    ends(waiter, 0);
}

#[test]
fn a_line_that_makes_no_sense_ends_the_connection_and_releases() {
    let place = Place::file();
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(64 * 1024));
    for line in ["no JSON", "[]", r#"{"steal":"k"}"#, r#"{"lock":"another"}"#, r#"{"release":0}"#, &long] {
        let mut client = asks(&place, &json!({"lock": "k"}));
        client.is_granted();
        client.says(line);
        client.is_refused("usage", false);
        ends(client, 64);
        assert!(place.is_free("k"));
    }
}

#[test]
fn a_request_that_no_store_grants_is_refused_with_its_kind() {
    let place = Place::file();
    for (request, kind) in [
        (json!({"lock": ""}), "invalid_key"),
        (json!({"lock": "k", "ttl_ms": 1}), "invalid_options"),
        (json!({"lock": "k", "permits": 33}), "invalid_options"),
        (json!({"keys": []}), "usage"),
    ] {
        let mut client = asks(&place, &request);
        client.is_refused(kind, false);
        ends(client, 64);
    }
    let mut part_of_a_line = hold(&place, "");
    part_of_a_line.type_in(br#"{"lock":"k"}"#);
    ends(part_of_a_line, 0);
}

#[test]
fn a_signal_to_it_alone_releases() {
    let place = Place::file();
    let mut client = hold(&place, "k");
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
fn a_client_that_says_nothing_for_too_long_loses_the_lock() {
    let place = Place::file();
    let mut silent = asks(&place, &json!({"lock": "k", "deadman_ms": 100}));
    silent.is_granted();
    assert_eq!(silent.told(), json!({"lost": "deadman"}));
    silent.end_by_itself().is(76, &[]);
    assert!(place.is_free("k"));
}

#[test]
fn several_keys_are_granted_together_or_not_at_all() {
    let place = Place::file();
    let mut client = asks(&place, &json!({"keys": ["b", "a", "b"]}));
    let held = client.is_granted();
    assert_eq!(held["token"], Value::Null);
    assert_eq!(held["tokens"].as_object().unwrap().keys().collect::<Vec<_>>(), ["a", "b"]);
    let mut busy = asks(&place, &json!({"keys": ["b", "c"], "wait_ms": 0}));
    assert!(busy.told()["busy"].is_object());
    ends(busy, 75);
    assert_eq!(["a", "b", "c"].map(|key| place.is_free(key)), [false, false, true]);
    ends(client, 0);
}

#[test]
fn readers_permits_and_candidates_are_what_they_are_elsewhere() {
    let place = Place::file();
    let mut readers = [(); 2].map(|()| asks(&place, &json!({"lock": "k", "mode": "read"})));
    for reader in &mut readers {
        reader.is_granted();
    }
    assert!(!place.is_free("k"));
    let [mut one, mut two, mut three] = [(); 3].map(|()| asks(&place, &json!({"lock": "p", "permits": 2})));
    // One of the three waits, and any of them may be the one.
    let told = [&mut one, &mut two, &mut three].map(Running::told);
    let slots: Vec<_> = told.iter().filter(|line| line["held"].is_object()).collect();
    let waiting: Vec<_> = told.iter().filter_map(|line| line["waiting"]["holders"].as_array()).collect();
    assert!(
        slots.len() == 2 && slots.iter().all(|slot| slot["held"]["tokens"].to_string().contains("p#0")),
        "{told:?}"
    );
    assert_ne!(slots[0]["held"]["tokens"], slots[1]["held"]["tokens"]);
    assert_eq!(waiting[0].len(), 2);
    let mut leader = asks(&place, &json!({"elect": "scheduler", "label": "host-a"}));
    leader.is_granted();
    let mut other = asks(&place, &json!({"elect": "scheduler", "label": "host-b", "wait_ms": 0}));
    assert_eq!(other.told()["busy"]["holders"][0]["label"], "host-a");
}

#[test]
fn a_store_that_cannot_be_reached_is_told_of_as_a_line() {
    let refused = ended(&mut leasehold("--backend redis://127.0.0.1:1 hold k"));
    refused.is(69, &["{\"leasehold\":1}\n", "\"error\":\"unavailable\"", "\"retry\":true"]);
}

#[test]
fn renewals_and_a_forced_release_are_told() {
    let (_server, place) = redis("");
    let mut client = hold(&place, "k --ttl 600ms");
    let held = client.is_granted();
    let mut until = held["until"].as_f64().unwrap();
    for _ in 0..3 {
        let renewed = client.told()["until"].as_f64().unwrap();
        assert!(renewed > until, "{renewed} {until}");
        until = renewed;
    }
    assert_eq!(place.code("force-release k"), 0);
    assert_eq!(client.answer(), json!({"lost": "force_released"}));
    ends(client, 76);
}

#[test]
fn a_client_is_warned_when_the_store_does_not_renew_and_told_when_the_lease_is_over() {
    let (mut server, place) = redis("");
    let mut client = hold(&place, "k --ttl 3s");
    client.is_granted();
    server.kill();
    let losing = client.answer();
    assert!(losing["losing"]["reason"] == "unreachable" && losing["losing"]["until"].is_f64(), "{losing}");
    assert_eq!(client.told(), json!({"lost": "unreachable"}));
}
