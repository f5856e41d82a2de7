//! `leasehold bench`: figures of a store, and what follows from them.

use leasehold_testkit::{Proxy, eventually_some, test};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, ended, leasehold, redis, wait_for};

/// The figures of a store. On a machine that is too busy for a hand-off, it is measured again.
fn figures(place: &Place) -> Value {
    // Two tasks of one session do not wait for each other.
    let is_reentrant = place.backend().starts_with("reentrant:");
    let is_whole =
        |figures: &Value| !figures["handoff"].is_null() && (is_reentrant || !figures["local_handoff"].is_null());
    let figures = eventually_some("all is measured", || {
        let measured = place.run("bench --seconds 1 --json");
        let figures = serde_json::from_str(&measured.is(0, &[]).output).unwrap();
        is_whole(&figures).then_some(figures)
    });
    assert_eq!(figures["backend"], place.backend(), "{figures}");
    assert_eq!(figures["local_handoff"].is_null(), is_reentrant, "{figures}");
    for spread in ["round_trip", "handoff", "local_handoff"].into_iter().filter(|spread| !figures[*spread].is_null()) {
        let [p50, p99] = ["p50", "p99"].map(|percentile| figures[spread][percentile].as_u64().unwrap());
        assert!(0 < p99 && p50 <= p99, "{spread}: {figures}");
    }
    assert!(["cycles_one_key", "cycles_many_keys"].iter().all(|name| figures[name].as_u64().unwrap() > 0), "{figures}");
    let held = place.run("list").output;
    assert!(!held.contains("bench"), "no lock is left: {held}");
    figures
}

#[test]
fn it_measures_files_and_an_interrupt_ends_it_and_leaves_no_lock() {
    let place = Place::file();
    let figures = figures(&place);
    assert!(!figures["advice"].to_string().contains("--ttl"), "files have no leases: {figures}");
    ended(&mut leasehold(&format!("bench {} --seconds 1", place.backend()))).is(0, &[place.backend()]);
    let running = place.start("bench --seconds 600");
    eventually_some("it begins", || place.run("list").output.contains("leasehold bench/").then_some(()));
    running.signal(Signal::INT);
    running.end_by_itself().is(130, &[]);
    assert!(!place.run("list").output.contains("bench"));
}

#[test]
fn it_advises_a_lease_for_redis_and_a_silent_store_is_69() {
    let (server, _) = redis("");
    for prefix in ["", "reentrant:", "redis-rw:"] {
        let figures = figures(&Place::at(format!("{prefix}{}", server.url())));
        assert!(figures["advice"][0].as_str().unwrap().starts_with("--ttl "), "{figures}");
    }
    let proxy = Proxy::start(server.port());
    let calls = || wait_for(server.calls("evalsha")) + wait_for(server.calls("eval"));
    let before = calls();
    let running = Place::at(proxy.url(&server.url())).start("bench --seconds 600");
    eventually_some("it begins", || (calls() > before + 10).then_some(()));
    proxy.refuse(true);
    proxy.black_hole();
    running.end_by_itself().is(69, &[]);
}
