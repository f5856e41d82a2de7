//! The crates around the drivers, with their own tests and those of the backends that use them, on real servers.

use std::time::Duration;

use super::equivalent::{ETCD, MYSQL, POSTGRES, REDIS};
use super::subject::{Look, Subject, is_rust};
use crate::mutants::copy::Copy;

/// The variants of the suite that run: the one that has no name, a program with every fast path on, and a Cluster.
const VARIANT: &str = "LEASEHOLD_CONFORMANCE_VARIANT";

/// Each case of the suite once, and not with the local hand-off off, too: that is the engine's.
const BRIEF: &str = "LEASEHOLD_CONFORMANCE_BRIEF";

/// A script of the model that fails is not made shorter: nobody reads it.
pub(in crate::mutants) const AS_ASKED: &str = "LEASEHOLD_MODEL_AS_ASKED";

/// How many inputs a property is tried with: a wrong parser is wrong about most, and there are hundreds of runs.
const CASES: &str = "PROPTEST_CASES";
const FEW: &str = "16";

/// The model of the suite for a few seconds: it notices most of what a test of the whole suite would notice later.
const SCRIPTS: &str = "any_script";
const SECONDS: (&str, &str) = ("LEASEHOLD_MODEL_SECONDS", "4");

/// Folders of packages, and their tests, the quickest first. The first package is the crate itself.
type Tests = &'static [(&'static str, &'static [&'static str])];

/// The names of the crates.
pub(super) const NAMES: [&str; 4] = ["redis", "mysql", "postgres", "etcd"];

const REDIS_TESTS: Tests = &[
    (
        "crates/redis",
        &["lib", "redirections", "nodes", "sentinels", "store", "batches", "connection", "signals", "tls"],
    ),
    ("crates/redis-single", SINGLE),
    ("crates/redis-reentrant", &[SCRIPTS, "garbage", "waiters", "conformance"]),
    ("crates/redis-rw", &[SCRIPTS, "readers", "conformance"]),
    ("crates/redlock", &[SCRIPTS, "garbage", "conformance"]),
    ("crates/cli", &["doctor::redis", "doctor::redlock"]),
];

#[rustfmt::skip]
const SINGLE: &[&str] = &[
    SCRIPTS, "group_commit", "refusals", "garbage", "admin", "epochs", "line", "queue", "least_user", "passwords",
    "cluster", "topologies", "driver", "conformance",
];

const MYSQL_TESTS: Tests = &[
    ("crates/mysql", &["lib", "rogue", "leases", "recovery", "queue", "schema", "sessions", "tls"]),
    ("crates/cli", &["doctor::mysql"]),
    ("crates/mysql-unique", &[SCRIPTS, "shared", "advisory_queue", "cost", "closing", "driver", "conformance"]),
    ("crates/mysql-rw", &[SCRIPTS, "shared", "readers", "admission", "cost", "turns", "driver", "conformance"]),
];

#[rustfmt::skip]
const POSTGRES_TESTS: Tests = &[
    ("crates/postgres", &["lib", SCRIPTS, "address", "sql", "settings", "contention", "pooler", "tls", "standby", "faults"]),
    ("crates/cli", &["doctor::postgres"]),
    ("crates/postgres", SUITES),
];

#[rustfmt::skip]
const ETCD_TESTS: Tests = &[
    ("crates/etcd", &["lib", SCRIPTS, "cost", "waiters", "settings", "tls", "late", "driver", "members", "conformance"]),
    ("crates/cli", &["doctor::etcd"]),
];

const SUITES: &[&str] = &["conformance", "driver"];

/// The crate with this name, whose tests find the servers in this environment.
pub(super) fn subject(name: &str, servers: &[(&'static str, String)]) -> Result<Subject, String> {
    // How many of a hundred mutants have to be noticed.
    let (tests, equivalent, enough) = match name {
        "redis" => (REDIS_TESTS, REDIS, 96),
        "mysql" => (MYSQL_TESTS, MYSQL, 100),
        "postgres" => (POSTGRES_TESTS, POSTGRES, 95),
        _ => (ETCD_TESTS, ETCD, 95),
    };
    let sources = format!("crates/{name}/src");
    // Servers of etcd keep two processors busy: three programs on each take so long that all seem to hang.
    let at_once: u8 = if name == "etcd" { 1 } else { 3 };
    let is_changed = |name: &str| name.starts_with(&sources) && is_rust(name.as_ref());
    Copy::create(name, |name, text| (!is_changed(name)).then_some(text)).map(|copy| Subject {
        copy,
        features: &["--all-features"],
        package: format!("leasehold-{name}"),
        root: format!("{sources}/lib.rs"),
        sources: sources.clone(),
        looks: looks(tests, servers),
        slower: u32::from(at_once) * 2 + 2,
        least: Duration::from_secs(30),
        asks_twice: true,
        at_once: at_once.into(),
        equivalent,
        rules: &[],
        enough,
    })
}

fn looks(tests: Tests, servers: &[(&'static str, String)]) -> Vec<Look> {
    let mut looks = Vec::new();
    for (place, (folder, all)) in tests.iter().enumerate() {
        for tests in *all {
            let scripts = *tests == SCRIPTS;
            let cluster = (*folder, *tests) == ("crates/redis-single", "conformance");
            let variants: &[&str] = if cluster { &["", "cluster"] } else { &[""] };
            let look = |variant: &str| {
                let mut environment = servers.to_vec();
                environment.extend([(VARIANT, variant.to_owned()), (CASES, FEW.to_owned())]);
                environment.extend([BRIEF, AS_ASKED, "LEASEHOLD_DEEP"].map(|switch| (switch, "1".to_owned())));
                environment.extend(scripts.then(|| (SECONDS.0, SECONDS.1.to_owned())));
                Look {
                    folder,
                    tests: if scripts { "conformance" } else { tests },
                    filter: if scripts { &[SCRIPTS] } else { &[] },
                    environment,
                    thorough: place > 0 || SUITES.contains(tests),
                }
            };
            looks.extend(variants.iter().map(|variant| look(variant)));
        }
    }
    looks
}
