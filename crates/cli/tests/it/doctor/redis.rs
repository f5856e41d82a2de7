use std::time::Duration;

use leasehold_testkit::redis::{Answer, Cluster, LeastUser, Sentinels, Server};
use leasehold_testkit::{Proxy, eventually, needs, test};

use super::{doctor, doctor_with, five_are_told, is_cured};
use crate::support::{Place, wait_for};

/// What a server needs that does not forget.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn start(arguments: &[&str]) -> Server {
    needs("redis-server", Server::start_blocking(&[&DURABLE, arguments].concat()))
}

/// Sends a cure as it stands there.
#[track_caller]
fn send(server: &Server, cure: &str) {
    let answer = wait_for(server.ask(&cure.split(' ').collect::<Vec<_>>()));
    assert!(!matches!(answer, Answer::Refused(_)), "{cure}: {answer:?}");
}

/// Waits until an answer of the server contains this.
fn until(server: &Server, question: &[&str], told: &str) {
    wait_for(eventually(told, async || server.ask(question).await.text().contains(told)));
}

#[test]
fn settings_that_forget_or_evict_are_warnings_and_their_cures_end_them() {
    let server = start(&[]);
    let url = server.url();
    let all = ["", "reentrant:", "redis-rw:"].map(|prefix| format!("{prefix}{url}"));
    for url in &all {
        doctor(url).is_well();
    }
    for (bad, id) in [
        ("CONFIG SET appendfsync everysec", "persistence"),
        ("CONFIG SET appendonly no", "persistence"),
        ("CONFIG SET maxmemory 104857600 maxmemory-policy allkeys-lru", "eviction-policy"),
    ] {
        send(&server, bad);
        for url in &all {
            doctor(url).has(id, "warning");
        }
        is_cured(&url, id, "warning", |cure| send(&server, cure));
    }
    send(&server, "CONFIG SET maxmemory 1");
    is_cured(&url, "memory", "error", |cure| send(&server, cure));
    doctor(&url).is_well();
}

#[test]
fn a_replica_is_an_error_and_the_primary_that_it_names_is_none() {
    let primary = start(&["--repl-diskless-sync-delay", "0"]);
    let replica = start(&["--replicaof", &format!("127.0.0.1 {}", primary.port())]);
    let said = doctor(&replica.url());
    doctor_with(&replica.url(), said.has("replica", "error")).is_rid_of("replica");
    send(&replica, "CONFIG SET replica-read-only no");
    doctor(&replica.url()).has("replica", "warning");

    until(&primary, &["INFO", "replication"], "state=online");
    is_cured(&primary.url(), "replicas", "warning", |cure| send(&primary, cure));
    doctor(&primary.url()).is_well();
}

/// A user who lacks one right, and what doctor says of it.
#[test]
fn each_missing_right_is_named_and_the_rule_that_gives_it_is_enough() {
    const README: &str = include_str!("../../../../redis-single/README.md");
    let (server, least) = (start(&[]), LeastUser::of(README));
    let url = wait_for(least.make(&server, &[]));
    let said = doctor(&url);
    said.has("persistence", "unknown");
    assert_eq!(said.code, 0);
    is_cured(&url, "persistence", "unknown", |cure| send(&server, cure));
    doctor(&url).is_well();
    for (right, health) in [
        ("+set", "error"),
        ("+hset", "error"),
        ("+time", "error"),
        ("+eval", "error"),
        ("~{leasehold:*", "error"),
        ("&{leasehold:*", "error"),
        ("+subscribe", "warning"),
        ("+pubsub|numsub", "warning"),
        ("+scan", "warning"),
        ("+type", "warning"),
        ("+info", "warning"),
    ] {
        wait_for(least.make(&server, &[right]));
        is_cured(&url, "privilege", health, |cure| {
            assert!(cure.starts_with("ACL SETUSER app ") && cure.contains(right), "{right}: {cure}");
            send(&server, cure);
        });
    }
    // Each is told once: without the channels, the commands that need one are not told, too, and others are.
    for missing in [&["&{leasehold:*"][..], &["&{leasehold:*", "+set"]] {
        wait_for(least.make(&server, missing));
        assert_eq!(doctor(&url).bad("privilege").len(), missing.len());
    }
    let renamed = start(&["--rename-command", "EVAL", ""]);
    assert_eq!(doctor(&renamed.url()).has("privilege", "unknown"), "ask again");
}

#[test]
fn entries_of_others_under_the_names_of_locks_are_found_and_deleted_by_the_cure() {
    let server = start(&[]);
    let url = |prefix: &str| format!("{prefix}{}", server.url());
    for (prefix, foreign) in [
        ("", "LPUSH {leasehold:k}:lock x"),
        ("", "SET {leasehold:k}:lock x"),
        ("", "SET {leasehold:k}:lock 0123456789abcdef0123456789abcdef"),
        ("", "HSET {leasehold:k}:epoch a b"),
        ("", "SET {leasehold:k}:epoch junk"),
        ("redis-rw:", "SET {leasehold:k}:epoch junk"),
        ("reentrant:", "SET {leasehold:k}:epoch junk"),
        ("", "RPUSH {leasehold:k}:forced x"),
        ("", "SADD {leasehold:a%20b}:queue a"),
        ("", "HSET {leasehold:k}:queue a b"),
        ("reentrant:", "SET {leasehold:k}:lock x"),
        ("redis-rw:", "SET {leasehold:k}:lock x PX 60000"),
    ] {
        send(&server, foreign);
        is_cured(&url(prefix), "foreign-entry", "warning", |cure| send(&server, cure));
    }
    // What another backend holds is left to it: deleting it would let two hold one key.
    for (holds, asks) in [
        ("", "redis-rw:"),
        ("", "reentrant:"),
        ("redis-rw:", ""),
        ("redis-rw:", "reentrant:"),
        ("reentrant:", "redis-rw:"),
    ] {
        let held = Place::at(url(holds)).hold("k");
        let cure = doctor(&url(asks)).has("foreign-entry", "warning").to_owned();
        assert!(cure.ends_with("?namespace=NAME"), "{holds} {asks}: {cure}");
        let refused = Place::at(url(asks)).run("run -n k true").errors;
        assert!(refused.contains("not of this backend") && refused.contains("a namespace of its own"), "{refused}");
        held.end();
    }
    let held = Place::at(server.url()).hold("k");
    let looked = doctor(&server.url());
    assert!(!format!("{looked:?}").contains("among 0 entries"), "there are a lock and a counter: {looked:?}");
    held.end();
    five_are_told(&server.url(), "foreign-entry", |count| {
        let many: Vec<_> = (0..count).map(|number| format!(" {{leasehold:{number}}}:lock x")).collect();
        send(&server, &format!("MSET{}", many.concat()));
    });
}

#[test]
fn a_lease_shorter_than_three_round_trips_is_a_warning_and_the_one_that_is_named_is_none() {
    let server = start(&[]);
    let proxy = Proxy::start(server.port());
    let url = proxy.url(&server.url());
    doctor_with(&url, "--ttl 10s").is_well();
    proxy.delay(Duration::from_millis(60));
    let said = doctor_with(&url, "--ttl 300ms");
    assert_eq!(said.code, 1, "{said:?}");
    doctor_with(&url, said.has("ttl", "warning")).is_rid_of("ttl");
}

#[test]
fn fewer_than_three_sentinels_are_a_warning_and_a_third_one_is_the_cure() {
    let all = needs("redis-server", wait_for(Sentinels::start()));
    doctor(&all.url()).is_rid_of("sentinels");
    is_cured(&all.url(), "replicas", "warning", |cure| send(&all.primary, cure));

    let primary = start(&[]);
    let [one, two, three] = [(); 3].map(|()| needs("redis-server", Server::start_blocking(&["--sentinel"])));
    send(&one, &format!("SENTINEL MONITOR main 127.0.0.1 {} 2", primary.port()));
    let url = format!("redis-sentinel://127.0.0.1:{}?sentinelServiceName=main", one.port());
    let said = doctor(&url);
    let cure = said.has("sentinels", "warning").split(',').next().unwrap();
    let cure = cure.replace("PRIMARY_HOST PORT", &format!("127.0.0.1 {}", primary.port()));
    for further in [&two, &three] {
        send(further, &cure);
    }
    until(&one, &["INFO", "sentinel"], "sentinels=3");
    doctor(&url).is_rid_of("sentinels");
}

#[test]
fn a_cluster_that_does_not_serve_all_slots_is_an_error() {
    let cluster = needs("redis-server", wait_for(Cluster::start()));
    let said = doctor(&cluster.url());
    said.is_rid_of("cluster-state");
    assert_eq!(said.bad("persistence").len(), 3, "one for each primary: {said:?}");
    send(&cluster.nodes()[0], "CLUSTER DELSLOTS 5460");
    until(&cluster.nodes()[0], &["CLUSTER", "INFO"], "cluster_state:fail");
    doctor(&cluster.url()).has("cluster-state", "error");
}
