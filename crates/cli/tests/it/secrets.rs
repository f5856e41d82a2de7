//! A password is in no output, whatever happens.

use std::fs;
use std::process::Command;

#[cfg(feature = "etcd")]
use leasehold_testkit::etcd::Cluster as EtcdCluster;
#[cfg(feature = "mysql")]
use leasehold_testkit::mysql::Server as MySqlServer;
#[cfg(feature = "postgres")]
use leasehold_testkit::postgres::Server as PostgresServer;
#[cfg(feature = "redis")]
use leasehold_testkit::redis::Server as RedisServer;
#[cfg(any(feature = "redis", feature = "mysql"))]
use leasehold_testkit::{needs, needs_or_why, test};

use crate::support::{Place, leasehold, text};

const CANARY: &str = "c4n4ry-in-a-coal-mine";

#[track_caller]
fn sings_nowhere(command: &mut Command) {
    let output = command.output().unwrap();
    for stream in [&output.stdout, &output.stderr] {
        assert!(!text(stream).contains(CANARY), "{:?}: {}", command.get_args(), text(stream));
    }
}

#[test]
fn a_password_is_in_no_output() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    fs::write(&file, format!("{CANARY}\nmore\n")).unwrap();
    let file = file.to_str().unwrap();
    let nobody = "redis://127.0.0.1:1/0";
    let run = ["run", "-n", "-vv", "k", "--", "env"];
    // In the URL, rightly and wrongly written, as an argument and from the environment.
    for url in [
        format!("redis://:{CANARY}@127.0.0.1:1/0"),
        format!("redis://ada:{CANARY}@127.0.0.1:1/not-a-number"),
        format!("redis-sentinel://:x@127.0.0.1:1?sentinelServiceName=m&sentinelPassword={CANARY}"),
        format!("redis-cluster://:{CANARY}@127.0.0.1:1"),
        format!("rediss://:{CANARY}@127.0.0.1:1"),
        format!("etcd://ada:{CANARY}@127.0.0.1:1"),
        format!("etcd://ada:{CANARY}@127.0.0.1:1?sslmode=disable"),
        format!("redis://:a/{CANARY}@h"),
        format!("redis//:{CANARY}@h"),
        format!("{CANARY}@h:6379"),
        format!("nowhere://:{CANARY}@h"),
    ] {
        for args in [&run[..], &["list"], &["inspect", "--json", "k"], &["run", "--json", "-w", "10ms", "k", "env"]] {
            sings_nowhere(leasehold(args).env("LEASEHOLD_BACKEND", &url));
            sings_nowhere(&mut leasehold(&[&["--backend", &url], args].concat()));
        }
        sings_nowhere(&mut leasehold(&[&url]));
        sings_nowhere(leasehold(&["--help"]).env("LEASEHOLD_BACKEND", &url));
        sings_nowhere(leasehold(&["run", "--help"]).env("LEASEHOLD_BACKEND", &url));
    }
    // From the environment and from a file.
    sings_nowhere(leasehold(&run).env("LEASEHOLD_BACKEND", nobody).env("LEASEHOLD_PASSWORD", CANARY));
    sings_nowhere(
        leasehold(&run).env("LEASEHOLD_BACKEND", nobody).env("RUST_LOG", "trace").env("LEASEHOLD_PASSWORD", CANARY),
    );
    sings_nowhere(&mut leasehold(&[&["--backend", nobody, "--password-file", file], &run[..]].concat()));
    // In the environment of a command that does run.
    sings_nowhere(Place::file().leasehold(&run).env("LEASEHOLD_PASSWORD", CANARY));
}

/// In no command line of the machine, nor in the name of any process or thread, of which the system makes the names of core
/// files; and in nothing that is printed while a lock is held.
#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "etcd"))]
#[track_caller]
fn sings_to_no_neighbour(url: &str, canary: &str) {
    let script = "for file in /proc/[0-9]*/cmdline /proc/[0-9]*/comm /proc/[0-9]*/task/[0-9]*/comm; do \
                  tr '\\0' ' ' <$file; echo; done 2>/dev/null; env; echo looked";
    let mut command = leasehold(&["run", "-vv", "--wait", "20s", "k", "--", "sh", "-c", script]);
    let output = command.env("LEASEHOLD_BACKEND", url).env("RUST_LOG", "trace").output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("leasehold") && out.contains("looked"), "{out}\n{err}");
    for line in out.lines().chain(err.lines()) {
        assert!(!line.contains(canary), "{line}");
    }
    for args in [&["list"][..], &["inspect", "--json", "k"], &["doctor"], &["doctor", "--json"]] {
        let output = leasehold(args).env("LEASEHOLD_BACKEND", url).env("RUST_LOG", "trace").output().unwrap();
        for stream in [&output.stdout, &output.stderr] {
            assert!(!text(stream).contains(canary), "{args:?}: {}", text(stream));
        }
    }
}

#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "etcd"))]
fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// The other test here gives its password in command lines.
#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "etcd"))]
fn another_canary() -> String {
    format!("y3ll0w-b1rd-{}", std::process::id())
}

#[cfg(feature = "redis")]
#[test]
fn a_password_that_redis_takes_is_in_no_output_and_no_command_line() {
    let canary = another_canary();
    let servers: Option<Vec<_>> = (0..3).map(|_| RedisServer::start_blocking(&[])).collect();
    let servers = needs("redis-server", servers);
    let nodes: Vec<String> = servers
        .iter()
        .map(|server| {
            wait_for(server.ask(&["ACL", "SETUSER", "app", "on", &format!(">{canary}"), "~*", "&*", "+@all"]));
            server.url().replacen("://", &format!("://app:{canary}@"), 1)
        })
        .collect();
    for url in [
        nodes[0].clone(),
        format!("reentrant:{}", nodes[0]),
        format!("redis-rw:{}", nodes[0]),
        format!("redlock:{}", nodes.join(",")),
    ] {
        sings_to_no_neighbour(&url, &canary);
    }
}

#[cfg(feature = "mysql")]
#[test]
fn a_password_that_mysql_takes_is_in_no_output_and_no_command_line() {
    let canary = another_canary();
    let server = needs_or_why("MariaDB or MySQL", wait_for(MySqlServer::start(&[])));
    let user = format!("CREATE USER app@'%' IDENTIFIED BY '{canary}'");
    wait_for(server.sql(&[&user, "GRANT ALL ON leasehold.* TO app@'%'"]));
    for scheme in ["mysql", "mysql-rw"] {
        let url = server.url_of("app", &canary).replacen("mysql:", &format!("{scheme}:"), 1);
        let migrated = leasehold(&["migrate"]).env("LEASEHOLD_BACKEND", &url).output().unwrap();
        assert!(migrated.status.success(), "{}", text(&migrated.stderr));
        sings_to_no_neighbour(&url, &canary);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_password_that_postgres_takes_is_in_no_output_and_no_command_line() {
    let canary = another_canary();
    let server = wait_for(PostgresServer::needed(&[]));
    let url = server.url_of("leasehold", &canary);
    let migrated = leasehold(&["migrate"]).env("LEASEHOLD_BACKEND", &url).output().unwrap();
    assert!(migrated.status.success(), "{}", text(&migrated.stderr));
    sings_to_no_neighbour(&url, &canary);
}

#[cfg(feature = "etcd")]
#[test]
fn a_password_that_etcd_takes_is_in_no_output_and_no_command_line() {
    let canary = another_canary();
    let cluster = wait_for(EtcdCluster::one(&[]));
    for command in [
        "user add root:root",
        "user grant-role root root",
        &format!("user add app:{canary}"),
        "role add app",
        "role grant-permission app readwrite --prefix=true leasehold/",
        "user grant-role app app",
        "auth enable",
    ] {
        wait_for(cluster.control(&command.split(' ').collect::<Vec<_>>())).unwrap();
    }
    let url = cluster.url().replacen("://", &format!("://app:{canary}@"), 1);
    sings_to_no_neighbour(&url, &canary);
    sings_to_no_neighbour(&format!("{url}?sslmode=disable"), &canary);
}

/// One rule for all stores: loopback is no network, and over one a password goes in clear text only if the URL says so. Every client
/// of Redis takes such a URL, so that there it is a warning.
#[cfg(any(feature = "redis", feature = "mysql", feature = "postgres", feature = "etcd"))]
#[test]
fn a_password_goes_over_a_network_in_clear_text_only_where_the_url_says_so() {
    // A name that never leads anywhere (RFC 6761).
    const NETWORK: &str = "no-such-host.invalid";
    for (url, refusal) in [
        #[cfg(feature = "redis")]
        ("redis://ada:c4n4ry@HOST:1", None),
        #[cfg(feature = "redis")]
        ("redlock:redis://:c4n4ry@HOST:1,redis://:c4n4ry@HOST:2,redis://:c4n4ry@HOST:3", None),
        #[cfg(feature = "mysql")]
        ("mysql://ada:c4n4ry@HOST:1/locks", Some("allow_public_key_retrieval=true")),
        #[cfg(feature = "postgres")]
        ("postgres://ada:c4n4ry@HOST:1/locks", Some("sslmode=disable")),
        #[cfg(feature = "etcd")]
        ("etcd://ada:c4n4ry@HOST:1", Some("sslmode=disable")),
    ] {
        let said = |host: &str| {
            let output = Place::at(url.replace("HOST", host)).run(&["list"]);
            let said = text(&output.stderr);
            assert!(!said.contains("c4n4ry"), "{url}: {said}");
            (output.status.code(), said)
        };
        for here in ["127.0.0.1", "localhost"] {
            let (code, said) = said(here);
            assert!(code == Some(69) && !said.contains("warning"), "{url}, {here}: {code:?} {said}");
        }
        let (code, said) = said(NETWORK);
        let warning = "can read the password; with TLS";
        match refusal {
            Some(switch) => assert!(code == Some(64) && said.contains(switch), "{url}: {code:?} {said}"),
            None => assert!(code == Some(69) && said.contains(warning), "{url}: {code:?} {said}"),
        }
        let json = Place::at(url.replace("HOST", NETWORK)).run(&["run", "--json", "-n", "k", "true"]);
        let events = text(&json.stderr);
        let first: serde_json::Value = serde_json::from_str(events.lines().next().unwrap_or_default()).unwrap();
        assert_eq!(first["event"], if refusal.is_some() { "error" } else { "warning" }, "{events}");
    }
    #[cfg(feature = "redis")]
    {
        let quiet = Place::at(format!("redis://{NETWORK}")).run(&["list"]);
        assert!(!text(&quiet.stderr).contains("warning"), "there is no password: {quiet:?}");
        let twice = Place::at(format!("redis://:c4n4ry@{NETWORK}")).run(&["doctor"]);
        assert_eq!(text(&twice.stderr).matches("warning").count(), 1, "{twice:?}");
    }
}
