use leasehold_testkit::etcd::Cluster;
use leasehold_testkit::launch::etcd as launcher;
use leasehold_testkit::{Authority, eventually_some, needs, test};

use super::{doctor, five_are_told, is_cured, is_trusted_as_by_the_system, shell};
use crate::support::wait_for;

/// Runs `etcdctl` as a cure has it.
#[track_caller]
fn run(cluster: &Cluster, cure: &str) {
    let endpoints = cluster.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(",");
    shell(cure, &[("ETCDCTL_API", "3"), ("ETCDCTL_ENDPOINTS", &endpoints)]);
}

/// The same, once the members have been connected for long enough that etcd takes another one.
fn run_once_settled(cluster: &Cluster, command: &str) {
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    eventually_some(command, || launcher::control(&cluster.ports(), &words).ok());
}

/// The releases that Debian has are from before the correction: doctor says so of each member.
const OLD: &str = "server-version";

#[test]
fn members_that_are_too_few_out_of_reach_or_without_a_vote_are_warnings() {
    let mut cluster = wait_for(Cluster::three());
    let url = cluster.url();
    let said = doctor(&url);
    assert!(said.findings.iter().all(|finding| finding["id"] == OLD || finding["health"] == "ok"), "{said:?}");

    let (ports, learner) = (cluster.ports(), launcher::peer_port(cluster.ports()[0]) + 1);
    let add = format!("etcdctl member add late --learner --peer-urls=http://127.0.0.1:{learner}");
    run_once_settled(&cluster, &add);
    is_cured(&url, "member-without-vote", "warning", |cure| {
        assert!(cure.starts_with("etcdctl member promote "), "{cure}");
        run(&cluster, &cure.replace("promote", "remove"));
    });

    run_once_settled(&cluster, &format!("etcdctl member add fourth --peer-urls=http://127.0.0.1:{learner}"));
    doctor(&url).has("member-count", "warning");
    is_cured(&url, "member-not-started", "warning", |cure| run(&cluster, cure));
    doctor(&url).is_rid_of("member-count");

    cluster.member(1).kill();
    let said = doctor(&url);
    said.has("member-unreachable", "warning");
    assert!(said.bad("member-unreachable")[0]["text"].as_str().unwrap().contains(&ports[1].to_string()), "{said:?}");
    cluster.restart(1).unwrap();
    eventually_some("it is back", || doctor(&url).bad("member-unreachable").is_empty().then_some(()));
}

#[test]
fn a_full_database_a_missing_right_and_foreign_keys_are_found_and_their_cures_end_them() {
    let cluster = wait_for(Cluster::one(&[]));
    let url = cluster.url();
    doctor(&url).has("member-count", "warning");
    for foreign in [
        "leasehold/leasehold/held/k/w/nobody",
        "leasehold/leasehold/held/k",
        "leasehold/leasehold/held/k/w/0123456789abcdef0123456789abcdef",
        "--lease=$(etcdctl lease grant 600 | cut -d ' ' -f 2) leasehold/leasehold/held/k",
    ] {
        run(&cluster, &format!("etcdctl put {foreign} x"));
        is_cured(&url, "foreign-key", "warning", |cure| run(&cluster, cure));
    }
    five_are_told(&url, "foreign-key", |count| {
        run(&cluster, &format!("for i in $(seq {count}); do etcdctl put leasehold/leasehold/held/k/$i x; done"));
    });
    run(
        &cluster,
        "etcdctl del --prefix leasehold/leasehold/held/k/; \
         etcdctl role add app; etcdctl user add app:c4n4ry; etcdctl user grant-role app app; \
         etcdctl user add root:r; etcdctl user grant-role root root; etcdctl auth enable",
    );
    let as_root = |command: &str| run(&cluster, &command.replace("etcdctl ", "etcdctl --user=root:r "));
    let app = format!("{}?sslmode=disable", url.replace("etcd://", "etcd://app:c4n4ry@"));
    for right in ["", "read", "write"] {
        if !right.is_empty() {
            as_root("etcdctl role revoke-permission --prefix=true app leasehold/leasehold/");
            as_root(&format!("etcdctl role grant-permission app {right} --prefix=true leasehold/leasehold/"));
        }
        is_cured(&app, "privilege", "error", as_root);
    }

    let small = wait_for(Cluster::one(&["--quota-backend-bytes=1000000"]));
    run(&small, "for i in $(seq 20); do head -c 90000 /dev/zero | tr '\\0' x | etcdctl put filler || exit 0; done");
    is_cured(&small.url(), "alarm", "error", |cure| run(&small, cure));
}

#[test]
fn a_url_without_authorities_trusts_those_of_the_system() {
    let authority = needs("openssl", Authority::new());
    let issued = authority.issue("server", "IP:127.0.0.1");
    let (_cluster, port) = wait_for(Cluster::one_with_tls(authority.files(&issued)));
    is_trusted_as_by_the_system(&format!("etcds://127.0.0.1:{port}"), authority.cert());
}
