//! What doctor finds: a store that is bad in one way has one finding more, and its cure ends that.

#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(feature = "redis")]
pub(crate) mod redlock;

use leasehold_testkit::test;
use serde_json::Value;

use crate::support::{Place, text};

/// What doctor said of a store, and its exit code.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    store: String,
    findings: Vec<Value>,
}

/// Asks doctor about a store, with further arguments.
#[track_caller]
pub(crate) fn doctor(url: &str, args: &[&str]) -> Said {
    let output = Place::at(url).run(&[&["doctor", "--json"], args].concat());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"));
    let code = output.status.code().unwrap();
    assert_eq!(said["exit_code"], code, "{said}");
    assert!(!text(&output.stdout).contains("secret"), "{said}");
    let findings = said["findings"].as_array().unwrap().clone();
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

    /// The health and the cure of the first finding with this id that is not `ok`.
    #[track_caller]
    pub(crate) fn finding(&self, id: &str) -> (&str, &str) {
        let bad = self.bad(id);
        let first = bad.first().unwrap_or_else(|| panic!("doctor finds no {id}: {self:?}"));
        (first["health"].as_str().unwrap(), first["cure"].as_str().unwrap_or_default())
    }

    #[track_caller]
    pub(crate) fn is_rid_of(&self, id: &str) {
        assert!(self.bad(id).is_empty(), "{self:?}");
    }

    /// Every finding is `ok`, and so is the exit code.
    #[track_caller]
    pub(crate) fn is_well(&self) {
        assert!(self.code == 0 && self.findings.iter().all(|finding| finding["health"] == "ok"), "{self:?}");
    }
}

/// A URL that names no authority trusts those of the system, which are in this file, and only those.
#[cfg(all(feature = "tls-rustls", any(feature = "postgres", feature = "etcd")))]
#[track_caller]
pub(crate) fn is_trusted_as_by_the_system(url: &str, authorities: &std::path::Path) {
    let place = Place::at(url);
    let answers = |file: &std::path::Path| {
        let output = place.leasehold(&["inspect", "k"]).env("SSL_CERT_FILE", file).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(answers(authorities), (Some(0), String::new()));
    let none = tempfile::NamedTempFile::new().unwrap();
    let (code, why) = answers(none.path());
    assert!(code == Some(78) && why.contains("certificate"), "{code:?}: {why}");
}

/// Shows that a store has this finding, and that the cures that doctor names end it, one after the other.
#[track_caller]
pub(crate) fn is_cured(url: &str, id: &str, health: &str, mut apply: impl FnMut(&str)) {
    let said = doctor(url, &[]);
    assert_eq!(said.finding(id).0, health, "{said:?}");
    assert_eq!(
        said.code,
        match health {
            "error" => 2,
            "warning" => said.code.max(1),
            _ => said.code,
        },
        "{said:?}"
    );
    let mut said = said;
    for _ in 0..5 {
        apply(said.finding(id).1);
        said = doctor(url, &[]);
        if said.bad(id).is_empty() {
            return;
        }
    }
    panic!("{id} is not cured: {said:?}");
}

/// Runs a future of the test's own.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn it_names_the_store_and_what_it_found_to_people_too() {
    let place = Place::file();
    let output = place.run(&["doctor"]);
    let lines = text(&output.stdout);
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some(format!("store   {}", place.backend()).as_str()));
    assert!(lines.clone().count() > 2 && lines.all(|line| line.starts_with("ok ")), "{output:?}");
    let down = Place::at("redis://ada:pw-secret@127.0.0.1:1/0").run(&["doctor"]);
    let said = text(&down.stdout);
    assert_eq!(down.status.code(), Some(2), "{said}");
    assert!(said.starts_with("store   redis://ada@127.0.0.1:1/0\nerror   open: "), "{said}");
    assert!(said.contains("\n  cure  the address is that of --backend") && !said.contains("secret"), "{said}");
    let said = doctor("redis://ada:pw-secret@127.0.0.1:1/0", &[]);
    assert_eq!((said.store.as_str(), said.finding("open").0), ("redis://ada@127.0.0.1:1/0", "error"));
    assert_eq!(doctor("redis://:p/w@127.0.0.1:1", &[]).store, "redis-single:…", "the same name as in every command");
    assert_eq!(place.code(&["doctor", "--ttl", "1ms"]), 64, "no lease is that short");
}

#[cfg(feature = "file")]
#[test]
fn a_directory_that_others_can_write_to_or_its_owner_cannot_is_an_error_and_chmod_the_cure() {
    let place = Place::file();
    doctor(place.backend(), &[]).is_well();
    let directory = place.backend().trim_start_matches("file:").to_owned();
    let shell =
        |command: &str| assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success());
    let above = directory.rsplit_once('/').unwrap().0;
    for spoilt in
        [format!("a+w {directory}"), format!("a+w {above}"), format!("u-w {directory}"), format!("a+w,u-x {directory}")]
    {
        shell(&format!("chmod {spoilt}"));
        is_cured(place.backend(), "directory", "error", |cure| shell(cure));
    }
    doctor(place.backend(), &[]).is_well();
}
