//! `leasehold bench`: figures of a store, and what follows from them.

use leasehold_testkit::{eventually_some, test};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running, leasehold, text};

fn figures(place: &Place) -> Value {
    let output = place.run(&["bench", "--seconds", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures["backend"], place.backend(), "{figures}");
    // Two tasks of one session do not wait for each other.
    let is_reentrant = place.backend().starts_with("reentrant:");
    assert_eq!(figures["local_handoff"].is_null(), is_reentrant, "{figures}");
    let spreads = ["round_trip", "handoff", "local_handoff"];
    for spread in spreads.into_iter().filter(|spread| !(is_reentrant && *spread == "local_handoff")) {
        let [p50, p99] = ["p50", "p99"].map(|percentile| figures[spread][percentile].as_u64().unwrap());
        assert!(0 < p99 && p50 <= p99, "{spread}: {figures}");
    }
    assert!(["cycles_one_key", "cycles_many_keys"].iter().all(|name| figures[name].as_u64().unwrap() > 0), "{figures}");
    let held = text(&place.run(&["list"]).stdout);
    assert!(!held.contains("bench"), "no lock is left: {held}");
    figures
}

#[test]
fn it_measures_files_for_about_as_long_as_it_is_told_and_leaves_no_lock() {
    let place = Place::file();
    let figures = figures(&place);
    assert!(!figures["advice"].to_string().contains("--ttl"), "files have no leases: {figures}");
    let url = place.backend().to_owned();
    let output = leasehold(&["bench", &url, "--seconds", "1"]).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(said.starts_with(&format!("store            {url}\nround trip ")), "{said}");
    for bad in ["0", "601", "x"] {
        assert_eq!(place.code(&["bench", "--seconds", bad]), 64, "{bad}");
    }
    assert_eq!(Place::at("file:").code(&["bench", "--session", "me"]), 64);
}

#[test]
fn an_interrupt_ends_it_and_leaves_no_lock() {
    let place = Place::file();
    let running = Running::start(&mut place.leasehold(&["bench", "--seconds", "600"]));
    eventually_some("it begins", || text(&place.run(&["list"]).stdout).contains("leasehold bench/").then_some(()));
    running.signal(Signal::INT);
    let ended = running.end_by_itself();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(text(&place.run(&["list"]).stdout).matches("bench").count(), 0);
}

#[cfg(feature = "redis")]
#[test]
fn it_advises_a_lease_for_redis_and_a_silent_store_is_69() {
    use leasehold_testkit::redis::Server;
    use leasehold_testkit::{Proxy, needs};

    use crate::doctor::wait_for;

    let server = needs("redis-server", Server::start_blocking(&[]));
    for prefix in ["", "reentrant:", "redis-rw:"] {
        let figures = figures(&Place::at(format!("{prefix}{}", server.url())));
        assert!(figures["advice"][0].as_str().unwrap().starts_with("--ttl "), "{figures}");
    }
    let proxy = Proxy::start(server.port());
    let place = Place::at(proxy.url(&server.url()));
    let running = Running::start(&mut place.leasehold(&["bench", "--seconds", "600"]));
    let calls = |command| wait_for(server.calls(command));
    eventually_some("it begins", || (calls("evalsha") > 10 || calls("eval") > 10).then_some(()));
    proxy.refuse(true);
    proxy.black_hole();
    let ended = running.end_by_itself();
    assert_eq!(ended.code, Some(69), "{ended:?}");
}
