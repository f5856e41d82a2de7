//! A password is in no output, whatever happens: every command that a test runs looks for the one of the tests. What is wrong with it is told.

use std::fs;

use leasehold_testkit::{etcd, mysql, needs, postgres, redis, test};

use crate::support::{Place, ended, leasehold, text, wait_for};

#[test]
fn a_password_is_in_no_output() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    fs::write(&file, "c4n4ry\nmore\n").unwrap();
    let nobody = "--backend redis://127.0.0.1:1/0";
    let run = "run -n -vv k -- env";
    // In the URL, rightly and wrongly written, as an argument and from the environment.
    for url in [
        "redis://:c4n4ry@127.0.0.1:1/0",
        "redis://ada:c4n4ry@127.0.0.1:1/not-a-number",
        "redis-sentinel://:x@127.0.0.1:1?sentinelServiceName=m&sentinelPassword=c4n4ry",
        "redis-cluster://:c4n4ry@127.0.0.1:1",
        "rediss://:c4n4ry@127.0.0.1:1",
        "etcd://ada:c4n4ry@127.0.0.1:1",
        "etcd://ada:c4n4ry@127.0.0.1:1?sslmode=disable",
        "redis://:a/c4n4ry@h",
        "redis//:c4n4ry@h",
        "c4n4ry@h:6379",
        "nowhere://:c4n4ry@h",
    ] {
        for args in [run, "list", "inspect --json k", "run --json -w 10ms k env", "--help", "run --help"] {
            Place::at(url).run(args);
            ended(&mut leasehold(&format!("--backend {url} {args}")));
        }
        ended(&mut leasehold(url));
        ended(&mut leasehold(&format!("-- --backend={url}")));
    }
    // From the environment and from a file.
    let mut from_environment = leasehold(&format!("{nobody} {run}"));
    ended(from_environment.env("LEASEHOLD_PASSWORD", "c4n4ry"));
    ended(from_environment.env("RUST_LOG", "trace"));
    ended(&mut leasehold(&format!("{nobody} --password-file {} {run}", file.display())));
    // In the environment of a command that does run.
    ended(Place::file().leasehold(run).env("LEASEHOLD_PASSWORD", "c4n4ry")).is(0, &["LEASEHOLD_KEY=k"]);
}

/// In no command line of the machine, nor in the name of any process or thread, of which the system makes the names of core
/// files; and in nothing that is printed while a lock is held.
#[track_caller]
fn sings_to_no_neighbour(url: &str, canary: &str) {
    let script = "for file in /proc/[0-9]*/cmdline /proc/[0-9]*/comm /proc/[0-9]*/task/[0-9]*/comm; do \
                  tr '\\0' ' ' <$file; echo; done 2>/dev/null; env; echo looked";
    let mut looks = leasehold("run -vv --wait 20s k -c");
    let output = looks.arg(script).env("LEASEHOLD_BACKEND", url).env("RUST_LOG", "trace").output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("leasehold") && out.contains("looked"), "{out}\n{err}");
    assert!(!out.contains(canary) && !err.contains(canary), "{out}\n{err}");
    for args in ["list", "inspect --json k", "doctor", "doctor --json"] {
        let seen = ended(leasehold(args).env("LEASEHOLD_BACKEND", url).env("RUST_LOG", "trace"));
        assert!(!seen.output.contains(canary) && !seen.errors.contains(canary), "{seen:?}");
    }
}

/// Of each store one of its own: another gives its in a command line.
fn canary_of(store: &str) -> String {
    format!("y3ll0w-b1rd-{}-{store}", std::process::id())
}

/// The store refuses what this URL says: 78, and why.
#[track_caller]
fn is_refused(url: &str, why: &str) {
    Place::at(url).run("list").is(78, &["refused by the store", why]).prints("");
}

#[test]
fn a_password_that_redis_takes_is_in_no_output_and_no_command_line_and_what_it_refuses_is_named() {
    let canary = canary_of("redis");
    let servers: Option<Vec<_>> = (0..3).map(|_| redis::Server::start_blocking(&[])).collect();
    let user = ["ACL", "SETUSER", "app", "on", &format!(">{canary}"), "~*", "&*", "+@all"];
    let with_user = |server: &redis::Server| {
        wait_for(server.ask(&user));
        wait_for(server.ask(&["CONFIG", "SET", "requirepass", "c4n4ry"]));
        server.url().replacen("://", &format!("://app:{canary}@"), 1)
    };
    let servers = needs("redis-server", servers);
    let nodes: Vec<_> = servers.iter().map(with_user).collect();
    let at = format!("127.0.0.1:{}", servers[0].port());
    for scheme in ["redis", "reentrant:redis", "redis-rw:redis"] {
        sings_to_no_neighbour(&nodes[0].replacen("redis", scheme, 1), &canary);
        is_refused(&format!("{scheme}://{at}"), "the server wants a password: redis://:PASSWORD@HOST or");
        is_refused(&format!("{scheme}://:c4n4ry-2@{at}"), "wrong user or password");
        is_refused(&format!("{scheme}://ada:c4n4ry@{at}"), "wrong user or password");
        is_refused(&format!("{scheme}://:c4n4ry@{at}/99"), &format!("{at}/99: it could not be set up"));
    }
    sings_to_no_neighbour(&format!("redlock:{}", nodes.join(",")), &canary);
}

#[test]
fn a_password_that_mysql_takes_is_in_no_output_and_no_command_line_and_what_it_refuses_is_named() {
    let canary = canary_of("mysql");
    let server = wait_for(mysql::Server::needed(&[]));
    let user = format!("CREATE USER app@'%' IDENTIFIED BY '{canary}'");
    wait_for(server.sql(&[&user, "GRANT ALL ON leasehold.* TO app@'%'"]));
    for scheme in ["mysql:", "mysql-rw:"] {
        let url = |user, password, database| {
            server.url_of(user, password).replacen("mysql:", scheme, 1).replacen("/leasehold", database, 1)
        };
        let taken = url("app", &canary, "/leasehold");
        Place::at(&taken).run("migrate").is(0, &[]);
        sings_to_no_neighbour(&taken, &canary);
        is_refused(&url("app", "c4n4ry-2", "/leasehold"), "check user, password, and the user's rights");
        is_refused(&url("app", &canary, "/nowhere"), "/nowhere: check user, password, and the user's rights");
        is_refused(&url("root", "", "/nowhere"), "/nowhere: create the database first");
    }
}

#[test]
fn a_password_that_postgres_takes_is_in_no_output_and_no_command_line_and_what_it_refuses_is_named() {
    let server = wait_for(postgres::Server::needed(&[]));
    let canary = canary_of("postgres");
    let url = server.url_of("leasehold", &canary);
    Place::at(&url).run("migrate").is(0, &[]);
    sings_to_no_neighbour(&url, &canary);
    let nowhere = server.url_of("leasehold", "c4n4ry").replacen("/leasehold?", "/nowhere?", 1);
    is_refused(&nowhere, "database \"nowhere\" does not exist");
    is_refused(&nowhere, "create the database first");
    is_refused(&server.url_of("nobody", "c4n4ry"), "check user, password, database");
    Place::at(format!("{}?nonsense=1", server.url())).run("list").is(64, &["nonsense"]);
}

#[test]
fn a_password_that_etcd_takes_is_in_no_output_and_no_command_line_and_what_it_refuses_is_named() {
    let canary = canary_of("etcd");
    let cluster = wait_for(etcd::Cluster::one(&[]));
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
    let with = |credentials: &str| cluster.url().replacen("://", &format!("://{credentials}@"), 1);
    let url = with(&format!("app:{canary}"));
    sings_to_no_neighbour(&url, &canary);
    sings_to_no_neighbour(&format!("{url}?sslmode=disable"), &canary);
    is_refused(&cluster.url(), "the server wants a user and a password");
    is_refused(&format!("{}?sslmode=disable", with("root:c4n4ry-2")), "check user and password");
}

/// One rule for all stores: loopback is no network, and over one a password goes in clear text only if the URL says so. Every client
/// of Redis takes such a URL, so that there it is a warning.
#[test]
fn a_password_goes_over_a_network_in_clear_text_only_where_the_url_says_so() {
    // A name that never leads anywhere (RFC 6761).
    const NETWORK: &str = "no-such-host.invalid";
    for (url, refusal) in [
        ("redis://ada:c4n4ry@HOST:1", None),
        ("redlock:redis://:c4n4ry@HOST:1,redis://:c4n4ry@HOST:2,redis://:c4n4ry@HOST:3", None),
        ("mysql://ada:c4n4ry@HOST:1/locks", Some("allow_public_key_retrieval=true")),
        ("postgres://ada:c4n4ry@HOST:1/locks", Some("sslmode=disable")),
        ("etcd://ada:c4n4ry@HOST:1", Some("sslmode=disable")),
    ] {
        for here in ["127.0.0.1", "localhost"] {
            let down = Place::at(url.replace("HOST", here)).run("list");
            down.is(69, &[]);
            assert!(!down.errors.contains("warning"), "{down:?}");
        }
        let far = Place::at(url.replace("HOST", NETWORK));
        let (code, said) = refusal.map_or((69, "can read the password; with TLS"), |switch| (64, switch));
        far.run("list").is(code, &[said]);
        let first = far.run("run --json -n k true").event();
        assert_eq!(first["event"], if refusal.is_some() { "error" } else { "warning" }, "{first}");
    }
    for (url, command, warnings) in [("redis://HOST", "list", 0), ("redis://:c4n4ry@HOST", "doctor", 1)] {
        let said = Place::at(url.replace("HOST", NETWORK)).run(command);
        assert_eq!(said.errors.matches("warning").count(), warnings, "{said:?}");
    }
}
