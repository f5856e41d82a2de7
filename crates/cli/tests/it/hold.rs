//! `leasehold hold`: the lines of one client on standard input and output.

use leasehold_testkit::test;
#[cfg(feature = "redis")]
use leasehold_testkit::{needs, redis::Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Place, Running, leasehold};

/// A client of `hold`.
struct Client(Running);

impl Client {
    /// Starts it with these arguments, and reads the version.
    #[track_caller]
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut client = Self(Running::start(&mut place.leasehold(&[&["hold"], args].concat())));
        assert_eq!(client.line(), json!({"leasehold": 1}));
        client
    }

    /// The same for one that asks by a line.
    #[track_caller]
    fn asks(place: &Place, request: &Value) -> Self {
        let mut client = Self::start(place, &[]);
        client.says(&request.to_string());
        client
    }

    #[track_caller]
    fn says(&mut self, line: &str) {
        self.0.type_in(format!("{line}\n").as_bytes());
    }

    #[track_caller]
    fn line(&mut self) -> Value {
        let line = self.0.line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a line of the server: {line:?}"))
    }

    #[track_caller]
    fn is_granted(&mut self) -> Value {
        let line = self.line();
        assert!(line["held"].is_object(), "{line}");
        line["held"].clone()
    }

    /// Its exit code, and its last lines, after its input has ended.
    #[track_caller]
    fn end(self) -> (Option<i32>, Vec<Value>) {
        let ended = self.0.end();
        (ended.code, ended.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }
}

fn is_held(place: &Place, key: &str) -> bool {
    place.code(&["run", "-n", key, "--", "true"]) == 75
}

#[test]
fn a_key_of_the_command_line_is_held_until_the_input_ends() {
    let place = Place::file();
    let mut client = Client::start(&place, &["k", "--label", "ada"]);
    let held = client.is_granted();
    assert!(held["token"].as_u64().unwrap() > 0 && held["token"] == held["tokens"]["k"]);
    assert_eq!(held["until"], Value::Null, "files have no lease");
    assert!(is_held(&place, "k"));
    assert_eq!(client.end(), (Some(0), vec![]));
    assert!(!is_held(&place, "k"));
}

#[test]
fn a_client_asks_by_a_line_and_releases_by_another() {
    let place = Place::file();
    let mut client = Client::asks(&place, &json!({"lock": "k", "reason": "r", "a field of later": [1]}));
    client.is_granted();
    assert!(is_held(&place, "k"));
    client.says("{}");
    client.says(r#"{"release":true}"#);
    assert_eq!(client.line(), json!({"released": true}));
    assert_eq!(client.end(), (Some(0), vec![]));
    assert!(!is_held(&place, "k"));
}

#[test]
fn a_waiter_is_told_who_holds_it_and_is_granted_it_when_that_one_is_killed() {
    let place = Place::file();
    let mut holder = Client::start(&place, &["k", "--label", "ada"]);
    holder.is_granted();
    let mut busy = Client::start(&place, &["k", "-n"]);
    assert_eq!(busy.line()["busy"]["holders"][0]["label"], "ada");
    assert_eq!(busy.end(), (Some(75), vec![]));
    let mut waiter = Client::asks(&place, &json!({"lock": "k"}));
    let waiting = waiter.line();
    assert_eq!(waiting["waiting"]["holders"][0]["label"], "ada", "{waiting}");
    holder.0.signal(Signal::KILL);
    waiter.is_granted();
    assert_eq!(waiter.end().0, Some(0));
}

#[test]
fn a_waiter_can_give_up() {
    let place = Place::file();
    let _holder = place.hold("k");
    let mut client = Client::asks(&place, &json!({"lock": "k"}));
    client.says(r#"{"release":true}"#);
    assert_eq!(client.end(), (Some(0), vec![json!({"released": true})]));
}

#[test]
fn a_line_that_makes_no_sense_ends_the_connection_and_releases() {
    let place = Place::file();
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(64 * 1024));
    for line in ["no JSON", "[]", r#"{"steal":"k"}"#, r#"{"lock":"another"}"#, r#"{"release":0}"#, &long] {
        let mut client = Client::asks(&place, &json!({"lock": "k"}));
        client.is_granted();
        client.says(line);
        let shown = &line[..line.len().min(40)];
        let refused = client.line();
        assert_eq!((&refused["error"], &refused["retry"]), (&json!("usage"), &json!(false)), "{shown}: {refused}");
        assert!(refused["message"].as_str().unwrap().len() < 1000, "{shown}");
        assert_eq!(client.end(), (Some(64), vec![]), "{shown}");
        assert!(!is_held(&place, "k"), "{shown}");
    }
}

#[test]
fn a_request_that_no_store_grants_is_refused_with_its_kind() {
    let place = Place::file();
    for (request, kind, code) in [
        (json!({"lock": ""}), "invalid_key", 64),
        (json!({"lock": "k", "ttl_ms": 1}), "invalid_options", 64),
        (json!({"lock": "k", "permits": 33}), "invalid_options", 64),
        (json!({"keys": []}), "usage", 64),
    ] {
        let mut client = Client::asks(&place, &request);
        let refused = client.line();
        assert_eq!(refused["error"], kind, "{request}: {refused}");
        assert_eq!(client.end(), (Some(code), vec![]), "{request}");
    }
}

#[test]
fn a_part_of_a_line_is_no_request() {
    let place = Place::file();
    let mut client = Client::start(&place, &[]);
    client.0.type_in(br#"{"lock":"k"}"#);
    assert_eq!(client.end(), (Some(0), vec![]), "it was not granted anything");
}

#[test]
fn a_signal_to_it_alone_releases() {
    let place = Place::file();
    let mut client = Client::start(&place, &["k"]);
    client.is_granted();
    for of_a_terminal in [Signal::INT, Signal::QUIT, Signal::HUP] {
        client.0.signal(of_a_terminal);
    }
    client.says("{}");
    assert!(is_held(&place, "k"), "its client got them, too, and has not ended yet");
    client.0.signal(Signal::TERM);
    assert_eq!(client.line(), json!({"lost": "shutdown"}));
    assert_eq!(client.0.end_by_itself().code, Some(143));
    assert!(!is_held(&place, "k"));
}

#[test]
fn a_client_that_says_nothing_for_too_long_loses_the_lock() {
    let place = Place::file();
    let mut silent = Client::asks(&place, &json!({"lock": "k", "deadman_ms": 100}));
    silent.is_granted();
    assert_eq!(silent.line(), json!({"lost": "deadman"}));
    assert_eq!(silent.0.end_by_itself().code, Some(76));
    assert!(!is_held(&place, "k"));
}

#[test]
fn several_keys_are_granted_together_or_not_at_all() {
    let place = Place::file();
    let mut client = Client::asks(&place, &json!({"keys": ["b", "a", "b"]}));
    let held = client.is_granted();
    assert_eq!(held["token"], Value::Null);
    assert_eq!(held["tokens"].as_object().unwrap().keys().collect::<Vec<_>>(), ["a", "b"]);
    let mut busy = Client::asks(&place, &json!({"keys": ["b", "c"], "wait_ms": 0}));
    assert!(busy.line()["busy"].is_object());
    assert_eq!(busy.end().0, Some(75));
    assert!(is_held(&place, "a") && is_held(&place, "b") && !is_held(&place, "c"));
    assert_eq!(client.end(), (Some(0), vec![]));
}

#[test]
fn readers_permits_and_candidates_are_what_they_are_elsewhere() {
    let place = Place::file();
    let mut readers: Vec<_> = (0..2).map(|_| Client::asks(&place, &json!({"lock": "k", "mode": "read"}))).collect();
    for reader in &mut readers {
        reader.is_granted();
    }
    assert!(is_held(&place, "k"));
    let mut permits: Vec<_> = (0..3).map(|_| Client::asks(&place, &json!({"lock": "p", "permits": 2}))).collect();
    let slots: Vec<_> = permits[..2].iter_mut().map(|permit| permit.is_granted()["tokens"].to_string()).collect();
    assert!(slots[0] != slots[1] && slots.iter().all(|slot| slot.contains("p#0")), "{slots:?}");
    assert_eq!(permits[2].line()["waiting"]["holders"].as_array().unwrap().len(), 2);
    let mut leader = Client::asks(&place, &json!({"elect": "scheduler", "label": "host-a"}));
    leader.is_granted();
    let mut other = Client::asks(&place, &json!({"elect": "scheduler", "label": "host-b", "wait_ms": 0}));
    assert_eq!(other.line()["busy"]["holders"][0]["label"], "host-a");
}

#[test]
fn options_of_a_lock_need_the_key_of_one() {
    let place = Place::file();
    assert_eq!(place.code(&["hold", "-n"]), 64);
    assert_eq!(place.code(&["hold", "-n", "-w", "1s", "k"]), 64);
}

#[cfg(feature = "redis")]
#[test]
fn a_store_that_cannot_be_reached_is_told_of_as_a_line() {
    let ended = leasehold(&["--backend", "redis://127.0.0.1:1", "hold", "k"]).output().unwrap();
    let lines: Vec<Value> = ended.stdout.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
    assert_eq!((lines[0].clone(), ended.status.code()), (json!({"leasehold": 1}), Some(69)));
    assert_eq!((&lines[1]["error"], &lines[1]["retry"]), (&json!("unavailable"), &json!(true)));
}

#[cfg(feature = "redis")]
#[test]
fn renewals_and_a_forced_release_are_told() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("redis://127.0.0.1:{}/0", server.port()));
    let mut client = Client::start(&place, &["k", "--ttl", "600ms"]);
    let held = client.is_granted();
    let mut until = held["until"].as_f64().unwrap();
    for _ in 0..3 {
        let renewed = client.line()["until"].as_f64().unwrap();
        assert!(renewed > until, "{renewed} {until}");
        until = renewed;
    }
    assert_eq!(place.code(&["force-release", "k"]), 0);
    let mut last = client.line();
    while last["until"].is_f64() {
        last = client.line();
    }
    assert_eq!(last, json!({"lost": "force_released"}));
    assert_eq!(client.end(), (Some(76), vec![]));
}

#[cfg(feature = "redis")]
#[test]
fn a_client_is_warned_when_the_store_does_not_renew_and_told_when_the_lease_is_over() {
    let mut server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("redis://127.0.0.1:{}/0", server.port()));
    let mut client = Client::start(&place, &["k", "--ttl", "3s"]);
    client.is_granted();
    server.kill();
    let mut line = client.line();
    while line["until"].is_f64() {
        line = client.line();
    }
    assert_eq!(line["losing"]["reason"], "unreachable", "{line}");
    assert!(line["losing"]["until"].is_f64());
    assert_eq!(client.line(), json!({"lost": "unreachable"}));
}
