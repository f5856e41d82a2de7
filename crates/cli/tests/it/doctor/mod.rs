//! What doctor finds: a store that is bad in one way has one finding more, and its cure ends that.

pub(crate) mod etcd;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod redlock;

use std::path::Path;
use std::process::Command;

use leasehold_testkit::test;
use serde_json::Value;

use crate::support::{Place, ended};

/// What doctor said of a store, and its exit code.
#[derive(Debug)]
struct Said {
    code: i32,
    store: String,
    findings: Vec<Value>,
}

/// Asks doctor about a store.
#[track_caller]
fn doctor(url: &str) -> Said {
    doctor_with(url, "")
}

/// The same, with further arguments.
#[track_caller]
fn doctor_with(url: &str, args: &str) -> Said {
    let ended = Place::at(url).run(&format!("doctor --json {args}"));
    let said: Value = serde_json::from_str(&ended.output).unwrap_or_else(|_| panic!("no JSON: {ended:?}"));
    let (code, findings) = (ended.code.unwrap(), said["findings"].as_array().unwrap().clone());
    assert_eq!(said["exit_code"], code, "{said}");
    for finding in &findings {
        let id = format!("`{}`", finding["id"].as_str().unwrap());
        assert!(include_str!("../../../../../docs/program.md").contains(&id), "docs/program.md does not have {id}");
        let health = finding["health"].as_str().unwrap();
        assert!(["ok", "unknown", "warning", "error"].contains(&health), "{finding}");
        assert!(finding["text"].as_str().is_some_and(|text| !text.is_empty() && !text.contains('\n')), "{finding}");
        assert!(health == "ok" || finding["cure"].is_string() || finding["id"] == "open", "no cure: {finding}");
    }
    Said { code, store: said["backend"].as_str().unwrap().to_owned(), findings }
}

impl Said {
    /// The findings with this id that are not `ok`.
    fn bad(&self, id: &str) -> Vec<&Value> {
        self.findings.iter().filter(|finding| finding["id"] == id && finding["health"] != "ok").collect()
    }

    /// The first finding with this id that is not `ok` has this health, and so has the exit code at least. Its cure.
    #[track_caller]
    fn has(&self, id: &str, health: &str) -> &str {
        let bad = self.bad(id);
        let first = bad.first().unwrap_or_else(|| panic!("doctor finds no {id}: {self:?}"));
        assert_eq!(first["health"], health, "{self:?}");
        let codes = match health {
            "error" => 2..=2,
            "warning" => 1..=2,
            _ => 0..=2,
        };
        assert!(codes.contains(&self.code), "{self:?}");
        first["cure"].as_str().unwrap_or_default()
    }

    #[track_caller]
    fn is_rid_of(&self, id: &str) {
        assert!(self.bad(id).is_empty(), "{self:?}");
    }

    /// Every finding is `ok`, and so is the exit code.
    #[track_caller]
    fn is_well(&self) {
        assert!(self.code == 0 && self.findings.iter().all(|finding| finding["health"] == "ok"), "{self:?}");
    }
}

/// A URL that names no authority trusts those of the system, which are in this file, and only those.
#[track_caller]
fn is_trusted_as_by_the_system(url: &str, authorities: &Path) {
    let place = Place::at(url);
    let answers = |file: &Path| ended(place.leasehold("inspect k").env("SSL_CERT_FILE", file));
    assert_eq!(answers(authorities).is(0, &[]).errors, "");
    answers(tempfile::NamedTempFile::new().unwrap().path()).is(78, &["certificate"]);
}

/// Shows that a store has this finding, and that the cures that doctor names end it, one after the other.
#[track_caller]
fn is_cured(url: &str, id: &str, health: &str, mut apply: impl FnMut(&str)) {
    let mut said = doctor(url);
    apply(said.has(id, health));
    for _ in 1..5 {
        said = doctor(url);
        match said.bad(id).first() {
            Some(left) => apply(left["cure"].as_str().unwrap_or_default()),
            None => return,
        }
    }
    doctor(url).is_rid_of(id);
}

/// Of many findings of one kind five are told, and how many more there are. `bad` makes it so many.
#[track_caller]
fn five_are_told(url: &str, id: &str, mut bad: impl FnMut(usize)) {
    for (number, told) in [(5, 5), (6, 6), (9, 6)] {
        bad(number);
        let said = doctor(url);
        assert_eq!(said.bad(id).len(), told, "{number}: {said:?}");
    }
}

/// Runs a cure, as it stands there, in a shell.
#[track_caller]
fn shell(cure: &str, environment: &[(&str, &str)]) {
    ended(Command::new("sh").args(["-ec", cure]).envs(environment.iter().copied())).is(0, &[]);
}

#[test]
fn it_names_the_store_and_what_it_found_to_people_too() {
    let nowhere = "redis://ada:c4n4ry@127.0.0.1:1/0";
    let named = "store   redis://ada@127.0.0.1:1/0\nerror   open: ";
    Place::at(nowhere).run("doctor").is(2, &[named, "\n  cure  the address is that of --backend"]);
    let said = doctor(nowhere);
    said.has("open", "error");
    assert_eq!(said.store, "redis://ada@127.0.0.1:1/0");
    assert_eq!(doctor("redis://:p/w@127.0.0.1:1").store, "redis-single:…", "the same name as in every command");
}

#[test]
fn a_directory_that_others_can_write_to_or_its_owner_cannot_is_an_error_and_chmod_the_cure() {
    let place = Place::file();
    doctor(place.backend()).is_well();
    let directory = place.backend().trim_start_matches("file:");
    let above = directory.rsplit_once('/').unwrap().0;
    for spoilt in
        [format!("a+w {directory}"), format!("a+w {above}"), format!("u-w {directory}"), format!("a+w,u-x {directory}")]
    {
        shell(&format!("chmod {spoilt}"), &[]);
        is_cured(place.backend(), "directory", "error", |cure| shell(cure, &[]));
    }
    assert_eq!(place.code("run k true"), 0);
    shell(&format!("cd {directory}/leasehold; date > a.lock; mkdir b.lock; mkfifo c.lock; cp k.lock d.lock"), &[]);
    assert_eq!(place.code("run a true"), 78);
    is_cured(place.backend(), "foreign-entry", "warning", |cure| shell(cure, &[]));
    five_are_told(place.backend(), "foreign-entry", |count| {
        shell(&format!("cd {directory}/leasehold; for n in $(seq {count}); do date > $n.lock; done"), &[]);
    });
    shell(&format!("rm {directory}/leasehold/*.lock"), &[]);
    doctor(place.backend()).is_well();
}
