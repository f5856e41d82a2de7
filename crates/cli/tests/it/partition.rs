//! A holder whose network is cut: its command is dead before the next holder's starts, on every store with leases.

use std::fs;
use std::path::Path;
use std::thread;

#[cfg(feature = "mysql")]
use leasehold_testkit::mysql::Server as MySqlServer;
#[cfg(feature = "postgres")]
use leasehold_testkit::postgres::Server as PostgresServer;
#[cfg(feature = "redis")]
use leasehold_testkit::redis::Server as RedisServer;
use leasehold_testkit::{Proxy, needs, needs_or_why, test};

use crate::support::{Place, Running};

/// Long enough that a machine on which everything takes its time still ends a command in time.
const TTL: &str = "5s";

/// From none to longer than the lease.
const KILL_AFTER: [&str; 4] = ["500ms", "2s", "1h", "0"];

#[cfg(feature = "redis")]
#[test(deep)]
fn on_one_redis() {
    let server = needs("redis-server", RedisServer::start_blocking(&[]));
    for scheme in ["", "reentrant:", "redis-rw:"] {
        cut_off_and_followed(&[server.port()], |ports| format!("{scheme}redis://127.0.0.1:{}", ports[0]));
    }
}

#[cfg(feature = "redis")]
#[test(deep)]
fn on_a_majority_of_redis_servers() {
    let servers: Option<Vec<_>> = (0..3).map(|_| RedisServer::start_blocking(&[])).collect();
    let servers = needs("redis-server", servers);
    let ports: Vec<_> = servers.iter().map(RedisServer::port).collect();
    cut_off_and_followed(&ports, |ports| {
        let nodes: Vec<_> = ports.iter().map(|port| format!("redis://127.0.0.1:{port}")).collect();
        format!("redlock:{}", nodes.join(","))
    });
}

#[cfg(feature = "mysql")]
#[test(deep)]
fn on_mysql() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = needs_or_why("MariaDB or MySQL", runtime.block_on(MySqlServer::start(&[])));
    let port = server.port();
    for scheme in ["mysql", "mysql-rw"] {
        let url = server.url().replacen("mysql:", &format!("{scheme}:"), 1);
        assert_eq!(Place::at(&url).code(&["migrate"]), 0);
        cut_off_and_followed(&[port], |ports| url.replace(&format!(":{port}/"), &format!(":{}/", ports[0])));
    }
}

#[cfg(feature = "postgres")]
#[test(deep)]
fn on_postgres() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(PostgresServer::needed(&[]));
    assert_eq!(Place::at(server.url()).code(&["migrate"]), 0);
    let (url, port) = (server.url(), server.port());
    cut_off_and_followed(&[port], |ports| url.replace(&format!(":{port}/"), &format!(":{}/", ports[0])));
}

/// A holder behind a network that falls silent, and one who waits for its lock on another: what the two commands write
/// must not mix. One that is given time to end must hear of it before the lock is another's.
fn cut_off_and_followed(servers: &[u16], url: impl Fn(&[u16]) -> String) {
    let network: Vec<_> = servers.iter().map(|server| Proxy::start(*server)).collect();
    let ports: Vec<_> = network.iter().map(Proxy::port).collect();
    let (near, far) = (Place::at(url(&ports)), Place::at(url(servers)));
    let folder = tempfile::tempdir().unwrap();
    let file = |kill_after: &str| folder.path().join(kill_after);
    let holders: Vec<_> = KILL_AFTER
        .iter()
        .map(|kill_after| {
            let script = "trap 'echo asked >>\"$0\"' TERM; echo ready; while :; do echo old >>\"$0\"; sleep 0.02; done";
            let options = ["run", "--json", "--ttl", TTL, "--kill-after", kill_after, kill_after];
            let mut holder = near.leasehold(&[&options[..], &["--", "sh", "-c", script]].concat());
            let mut holder = Running::start(holder.arg(file(kill_after)));
            holder.expect_line("ready");
            holder
        })
        .collect();
    // Renewed more than once, so that nobody takes a healthy lease for one that ends.
    pause_for_two_renewals();
    let asked = |kill_after: &str| fs::read_to_string(file(kill_after)).unwrap().contains("asked");
    assert!(!KILL_AFTER.into_iter().any(asked), "a healthy lease is no reason to end a command");
    let followers: Vec<_> = KILL_AFTER
        .iter()
        .map(|kill_after| {
            let options = ["run", "-w", "60s", kill_after, "--", "sh", "-c", "echo new >>\"$0\"; sleep 1"];
            Running::start(far.leasehold(&options).arg(file(kill_after)))
        })
        .collect();
    network.iter().for_each(Proxy::black_hole_all);
    for ((mut holder, follower), kill_after) in holders.into_iter().zip(followers).zip(KILL_AFTER) {
        let lost = holder.event("lost");
        assert_eq!(lost["reason"], "unreachable", "{kill_after}");
        assert_eq!(holder.end_by_itself().code, Some(76), "{kill_after}");
        assert_eq!(follower.end().code, Some(0), "{kill_after}");
        check(&file(kill_after), kill_after);
    }
}

fn check(file: &Path, kill_after: &str) {
    let written = fs::read_to_string(file).unwrap();
    let at = |what: &str| written.lines().position(|line| line == what);
    let new = at("new").expect("the next holder writes");
    let late = written.lines().skip(new).filter(|line| *line != "new").count();
    assert_eq!(late, 0, "of {new} lines so many came beside the next holder, with --kill-after {kill_after}");
    assert_eq!(at("asked").is_some(), kill_after != "0", "--kill-after {kill_after}");
}

#[allow(clippy::disallowed_methods, reason = "what is shown is that nothing happens meanwhile")]
fn pause_for_two_renewals() {
    thread::sleep(std::time::Duration::from_secs(4));
}
