//! The events of `--json`, which programs read.

use leasehold_testkit::test;
use serde_json::{Value, json};

use crate::support::{Place, leasehold, text};

fn events(output: &[u8]) -> Vec<Value> {
    text(output).lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn a_run_prints_its_events_in_order() {
    let place = Place::file();
    let output = place.run(&["run", "--json", "k", "--", "sh", "-c", "echo out; exit 3"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), "out\n"));
    let events = events(&output.stderr);
    let times: Vec<_> = events.iter().map(|event| event["time_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 1_700_000_000_000, "milliseconds since 1970: {times:?}");
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["acquired", "started", "exited", "released"]);
    let [acquired, started, exited, released] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (&acquired["key"], &acquired["backend"], &acquired["mode"]),
        (&json!("k"), &json!(place.backend()), &json!("exclusive"))
    );
    assert!(acquired["token"].as_u64().unwrap() > 0);
    assert_eq!(acquired["expires_in_ms"], Value::Null);
    assert!(acquired["waited_ms"].is_u64());
    assert!(started["pid"].as_u64().unwrap() > 0);
    assert_eq!((&exited["code"], &exited["signal"]), (&json!(3), &Value::Null));
    assert_eq!((&released["outcome"], &released["reason"]), (&json!("released"), &Value::Null));
    assert!(released["held_ms"].is_u64());
}

#[test]
fn a_failure_is_one_event_with_its_exit_code() {
    let place = Place::file();
    let holder = place.hold("k");
    let busy = events(&place.run(&["run", "-n", "-E", "9", "--json", "k", "--", "true"]).stderr);
    assert_eq!(
        (&busy[0]["event"], &busy[0]["kind"], &busy[0]["exit_code"]),
        (&json!("error"), &json!("busy"), &json!(9))
    );
    assert_eq!(busy.len(), 1);
    drop(holder);
    let unknown = leasehold(&["--backend", "nowhere://", "run", "--json", "k", "--", "true"]).output().unwrap();
    let unknown = events(&unknown.stderr);
    assert_eq!((&unknown[0]["kind"], &unknown[0]["exit_code"]), (&json!("usage"), &json!(64)));
    let missing = events(&place.run(&["run", "--json", "free", "--", "no-such-command"]).stderr);
    let last = missing.last().unwrap();
    assert_eq!((&last["kind"], &last["exit_code"]), (&json!("command"), &json!(127)));
}
