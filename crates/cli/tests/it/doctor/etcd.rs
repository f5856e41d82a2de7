use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::launch::etcd as launcher;
#[cfg(feature = "tls-rustls")]
use leasehold_testkit::{Authority, needs};
use leasehold_testkit::{eventually_some, test};

use super::{doctor, wait_for};

/// Runs `etcdctl` as a cure has it.
#[track_caller]
fn run(cluster: &Cluster, cure: &str) {
    let endpoints = cluster.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(",");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-ec", cure]).env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", endpoints);
    let ended = shell.output().unwrap();
    assert!(ended.status.success(), "{cure}: {ended:?}");
}

/// The same, once the members have been connected for long enough that etcd takes another one.
fn run_once_settled(cluster: &Cluster, command: &str) {
    let ports = cluster.ports();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    eventually_some(command, || launcher::control(&ports, &words).ok());
}

/// The releases that Debian has are from before the correction: doctor says so of each member.
const OLD: &str = "server-version";

#[test]
fn members_that_are_too_few_out_of_reach_or_without_a_vote_are_warnings() {
    let mut cluster = wait_for(Cluster::three());
    let url = cluster.url();
    let said = doctor(&url, &[]);
    assert!(said.findings.iter().all(|finding| finding["id"] == OLD || finding["health"] == "ok"), "{said:?}");

    let (ports, learner) = (cluster.ports(), launcher::peer_port(cluster.ports()[0]) + 1);
    let add = format!("etcdctl member add late --learner --peer-urls=http://127.0.0.1:{learner}");
    run_once_settled(&cluster, &add);
    let said = doctor(&url, &[]);
    let (health, cure) = said.finding("member-without-vote");
    assert!(health == "warning" && cure.starts_with("etcdctl member promote "), "{said:?}");
    run(&cluster, &cure.replace("promote", "remove"));
    doctor(&url, &[]).is_rid_of("member-without-vote");

    run_once_settled(&cluster, &format!("etcdctl member add fourth --peer-urls=http://127.0.0.1:{learner}"));
    let said = doctor(&url, &[]);
    assert_eq!(said.finding("member-count").0, "warning", "four: {said:?}");
    let (health, cure) = said.finding("member-not-started");
    assert_eq!(health, "warning", "{said:?}");
    run(&cluster, cure);
    let said = doctor(&url, &[]);
    said.is_rid_of("member-not-started");
    said.is_rid_of("member-count");

    cluster.member(1).kill();
    let said = doctor(&url, &[]);
    assert_eq!(said.finding("member-unreachable").0, "warning", "{said:?}");
    assert!(said.bad("member-unreachable")[0]["text"].as_str().unwrap().contains(&ports[1].to_string()), "{said:?}");
    cluster.restart(1).unwrap();
    eventually_some("it is back", || doctor(&url, &[]).bad("member-unreachable").is_empty().then_some(()));

    let one = wait_for(Cluster::one(&[]));
    assert_eq!(doctor(&one.url(), &[]).finding("member-count").0, "warning");
}

#[test]
fn a_full_database_a_missing_right_and_foreign_keys_are_found_and_their_cures_end_them() {
    let cluster = wait_for(Cluster::one(&[]));
    let url = cluster.url();
    for foreign in [
        "leasehold/leasehold/held/k/w/nobody",
        "leasehold/leasehold/held/k",
        "leasehold/leasehold/held/k/w/0123456789abcdef0123456789abcdef",
        "--lease=$(etcdctl lease grant 600 | cut -d ' ' -f 2) leasehold/leasehold/held/k",
    ] {
        run(&cluster, &format!("etcdctl put {foreign} x"));
        let said = doctor(&url, &[]);
        let (health, cure) = said.finding("foreign-key");
        assert_eq!(health, "warning", "{said:?}");
        run(&cluster, cure);
        doctor(&url, &[]).is_rid_of("foreign-key");
    }
    // Of many, five are told, and how many more there are.
    for (number, told) in [(5, 5), (6, 6), (7, 6)] {
        run(&cluster, &format!("for i in $(seq {number}); do etcdctl put leasehold/leasehold/held/k/$i x; done"));
        assert_eq!(doctor(&url, &[]).bad("foreign-key").len(), told);
    }
    run(&cluster, "etcdctl del --prefix leasehold/leasehold/held/k/");
    run(
        &cluster,
        "etcdctl role add app; etcdctl user add app:a-secret; etcdctl user grant-role app app; \
         etcdctl user add root:r; etcdctl user grant-role root root; etcdctl auth enable",
    );
    let as_root = |command: &str| run(&cluster, &command.replace("etcdctl ", "etcdctl --user=root:r "));
    let app = format!("{}?sslmode=disable", url.replace("etcd://", "etcd://app:a-secret@"));
    for right in [None, Some("read"), Some("write")] {
        if let Some(right) = right {
            as_root("etcdctl role revoke-permission --prefix=true app leasehold/leasehold/");
            as_root(&format!("etcdctl role grant-permission app {right} --prefix=true leasehold/leasehold/"));
        }
        let said = doctor(&app, &[]);
        let (health, cure) = said.finding("privilege");
        assert_eq!((said.code, health), (2, "error"), "{said:?}");
        as_root(cure);
        doctor(&app, &[]).is_rid_of("privilege");
    }

    let small = wait_for(Cluster::one(&["--quota-backend-bytes=1000000"]));
    let fill = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do head -c 90000 /dev/zero | tr '\\0' x | etcdctl put filler || exit 0; done";
    run(&small, fill);
    let said = doctor(&small.url(), &[]);
    let (health, cure) = said.finding("alarm");
    assert_eq!((said.code, health), (2, "error"), "{said:?}");
    run(&small, cure);
    doctor(&small.url(), &[]).is_rid_of("alarm");
}

#[cfg(feature = "tls-rustls")]
#[test]
fn a_url_without_authorities_trusts_those_of_the_system() {
    let authority = needs("openssl", Authority::new());
    let issued = authority.issue("server", "IP:127.0.0.1");
    let (_cluster, port) = wait_for(Cluster::one_with_tls(authority.files(&issued)));
    super::is_trusted_as_by_the_system(&format!("etcds://127.0.0.1:{port}"), authority.cert());
}
