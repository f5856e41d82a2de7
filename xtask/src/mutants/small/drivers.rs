//! The crates around the drivers, with their own tests and those of the backends that use them, on real servers.

use std::time::Duration;

use super::equivalent::{ETCD, Equivalent, MYSQL, POSTGRES, REDIS};
use super::subject::{Look, Patience, Program, Subject};
use crate::mutants::copy::Copy;
use crate::workspace::root;

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

/// A crate around a driver.
struct Crate {
    package: &'static str,
    root: &'static str,
    sources: &'static str,
    /// Folders of packages, and their tests, the quickest first. The first package is the crate itself.
    tests: &'static [(&'static str, &'static [&'static str])],
    equivalent: &'static [Equivalent],
    /// How many of a hundred have to be noticed.
    enough: usize,
}

/// The names of the crates.
pub(super) const NAMES: [&str; 4] = ["redis", "mysql", "postgres", "etcd"];

const REDIS_CRATE: Crate = Crate {
    package: "leasehold-redis",
    root: "crates/redis/src/lib.rs",
    sources: "crates/redis/src",
    tests: &[
        (
            "crates/redis",
            &["lib", "redirections", "nodes", "sentinels", "store", "batches", "connection", "signals", "tls"],
        ),
        ("crates/redis-single", SINGLE),
        ("crates/redis-reentrant", &[SCRIPTS, "garbage", "waiters", "conformance"]),
        ("crates/redis-rw", &[SCRIPTS, "readers", "conformance"]),
        ("crates/redlock", &[SCRIPTS, "garbage", "conformance"]),
        ("crates/cli", &["doctor::redis", "doctor::redlock"]),
    ],
    equivalent: REDIS,
    enough: 96,
};

#[rustfmt::skip]
const SINGLE: &[&str] = &[
    SCRIPTS, "group_commit", "refusals", "garbage", "admin", "epochs", "queue", "least_user", "passwords", "shut_out", "faults", "closing",
    "cluster", "topologies", "replicas", "fail_over", "silence", "driver", "conformance",
];

const MYSQL_CRATE: Crate = Crate {
    package: "leasehold-mysql",
    root: "crates/mysql/src/lib.rs",
    sources: "crates/mysql/src",
    tests: &[
        ("crates/mysql", &["lib", "rogue", "leases", "recovery", "queue", "schema", "sessions", "tls"]),
        ("crates/cli", &["doctor::mysql"]),
        (
            "crates/mysql-unique",
            &[SCRIPTS, "shared", "advisory_queue", "cost", "deadlocks", "closing", "driver", "conformance"],
        ),
        ("crates/mysql-rw", &[SCRIPTS, "shared", "readers", "admission", "cost", "turns", "driver", "conformance"]),
    ],
    equivalent: MYSQL,
    enough: 100,
};

#[rustfmt::skip]
const POSTGRES_CRATE: Crate = Crate {
    package: "leasehold-postgres",
    root: "crates/postgres/src/lib.rs",
    sources: "crates/postgres/src",
    tests: &[
        ("crates/postgres", &["lib", SCRIPTS, "address", "sql", "settings", "contention", "pooler", "tls", "standby", "faults"]),
        ("crates/cli", &["doctor::postgres"]),
        ("crates/postgres", SUITES),
    ],
    equivalent: POSTGRES,
    enough: 95,
};

#[rustfmt::skip]
const ETCD_CRATE: Crate = Crate {
    package: "leasehold-etcd",
    root: "crates/etcd/src/lib.rs",
    sources: "crates/etcd/src",
    tests: &[
        ("crates/etcd", &["lib", SCRIPTS, "cost", "waiters", "settings", "tls", "late", "driver", "members", "conformance"]),
        ("crates/cli", &["doctor::etcd"]),
    ],
    equivalent: ETCD,
    enough: 95,
};

const SUITES: &[&str] = &["conformance", "driver"];

/// The crate with this name, whose tests find the servers in this environment.
pub(super) fn subject(name: &str, servers: &[(&'static str, String)]) -> Result<Subject, String> {
    let driver = match name {
        "redis" => REDIS_CRATE,
        "mysql" => MYSQL_CRATE,
        "postgres" => POSTGRES_CRATE,
        _ => ETCD_CRATE,
    };
    // Servers of etcd keep two processors busy: three programs on each take so long that all seem to hang.
    let at_once: u8 = if name == "etcd" { 1 } else { 3 };
    Copy::create(name, Some(driver.sources)).map(|copy| Subject {
        tree: copy.tree,
        originals: root(),
        target: copy.target,
        incremental: false,
        features: &["--all-features"],
        package: driver.package,
        root: driver.root,
        sources: driver.sources,
        left_out: &[],
        looks: looks(&driver, servers),
        patience: Patience { slower: u32::from(at_once) * 2 + 2, least: Duration::from_secs(30) },
        asks_twice: true,
        at_once: at_once.into(),
        equivalent: driver.equivalent,
        rules: &[],
        enough: driver.enough,
    })
}

fn looks(driver: &Crate, servers: &[(&'static str, String)]) -> Vec<Look> {
    let mut looks = Vec::new();
    for (place, (folder, all)) in driver.tests.iter().enumerate() {
        for tests in *all {
            let scripts = *tests == SCRIPTS;
            let cluster = (*folder, *tests) == ("crates/redis-single", "conformance");
            let variants: &[&str] = if cluster { &["", "cluster"] } else { &[""] };
            let look = |variant: &str| Look {
                program: Program { folder, tests: if scripts { "conformance" } else { tests } },
                filter: if scripts { &[SCRIPTS] } else { &[] },
                environment: servers
                    .iter()
                    .cloned()
                    .chain([(VARIANT, variant.to_owned()), (BRIEF, "1".to_owned()), (AS_ASKED, "1".to_owned())])
                    .chain([(CASES, FEW.to_owned()), ("LEASEHOLD_DEEP", "1".to_owned())])
                    .chain(scripts.then(|| (SECONDS.0, SECONDS.1.to_owned())))
                    .collect(),
                thorough: place > 0 || SUITES.contains(tests),
            };
            looks.extend(variants.iter().map(|variant| look(variant)));
        }
    }
    looks
}
