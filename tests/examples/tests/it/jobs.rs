use leasehold_testkit::redis::Server;
use leasehold_testkit::{needs, test};

use crate::running::{Running, all_of, line_of};

#[test(multi_thread)]
async fn of_many_hosts_one_does_the_job() {
    let server = needs("redis-server", Server::start(&[]).await);
    let (cron, url) = (env!("CARGO_BIN_EXE_cron"), server.url());
    let told = all_of(5, cron, &[&url, "2026-05-01T03:00"]);
    let did = told.iter().filter(|line| *line == "did the job of 2026-05-01T03:00").count();
    let others = told.iter().filter(|line| *line == "another host has the job of 2026-05-01T03:00").count();
    assert_eq!((did, others), (1, 4), "{told:?}");
    let late = line_of(cron, &[&url, "2026-05-01T03:00"]);
    assert_eq!(late, "another host has the job of 2026-05-01T03:00", "a host that is late does not do it again");
    assert_eq!(line_of(cron, &[&url, "2026-05-01T04:00"]), "did the job of 2026-05-01T04:00");
}

#[test(multi_thread)]
async fn the_next_replica_leads_after_each() {
    let server = needs("redis-server", Server::start(&[]).await);
    let (replica, url) = (env!("CARGO_BIN_EXE_replica"), server.url());
    let (first, first_term) = leads(replica, &url, "ada");
    let second = Running::start(replica, &[&url, "ben"]);
    first.terminate();
    assert_eq!(first.rest(), ["ada resigned"]);
    let second_term = term(&second.line(), "ben");
    assert!(second_term > first_term, "{second_term} after {first_term}");
    let third = Running::start(replica, &[&url, "cay"]);
    // Killed: it resigns nothing.
    drop(second);
    let third_term = term(&third.line(), "cay");
    assert!(third_term > second_term, "{third_term} after {second_term}");
}

fn leads(replica: &str, url: &str, name: &str) -> (Running, u64) {
    let running = Running::start(replica, &[url, name]);
    let term = term(&running.line(), name);
    (running, term)
}

fn term(line: &str, name: &str) -> u64 {
    let term = line.strip_prefix(&format!("{name} leads in term ")).unwrap_or_else(|| panic!("{line}"));
    term.parse().expect("a number")
}
