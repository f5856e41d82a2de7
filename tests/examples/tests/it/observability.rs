//! The tables of `docs/observability.md`, beside what the code emits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::{Admin, Clock, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, Memory, describe_metrics};
use leasehold_testkit::test;
use metrics_exporter_prometheus::PrometheusBuilder;
use proc_macro2::{TokenStream, TokenTree};

/// What was measured: the kind of each metric, and its labels with their values.
pub(crate) type Metrics = BTreeMap<String, (String, BTreeMap<String, BTreeSet<String>>)>;

/// A span or an event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    by: String,
    name: String,
    level: String,
    fields: BTreeSet<String>,
}

pub(crate) fn documented_metrics() -> Metrics {
    let labels = |cell: &str| cell.split(';').map(|label| split_first(codes(label))).collect();
    let metrics = rows("| metric |").map(|row| (code(&row[0]), (row[1].clone(), labels(&row[3]))));
    metrics.collect()
}

fn documented_events() -> BTreeSet<Told> {
    let told = |row: &[String], by: String, fields: usize| Told {
        by,
        name: code(&row[0]),
        level: row[1].clone(),
        fields: codes(&row[fields]).into_iter().collect(),
    };
    let of_core = rows("| span |").chain(rows("| event | level | fields"));
    let of_core = of_core.map(|row| told(&row, "leasehold_core".to_owned(), 2));
    of_core.chain(rows("| event | level | crate").map(|row| told(&row, code(&row[2]), 3))).collect()
}

/// The rows of the table with this head, as cells.
fn rows(head: &str) -> impl Iterator<Item = Vec<String>> + use<> {
    let text = fs::read_to_string(root().join("docs/observability.md")).unwrap();
    let (_, table) = text.split_once(head).unwrap_or_else(|| panic!("no table begins with {head}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect());
    cells.collect::<Vec<_>>().into_iter()
}

/// What is between backticks.
fn codes(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn code(text: &str) -> String {
    split_first::<Vec<_>>(codes(text)).0
}

fn split_first<C: FromIterator<String>>(texts: Vec<String>) -> (String, C) {
    let mut texts = texts.into_iter();
    (texts.next().expect("a name"), texts.collect())
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

#[test(process, paused)]
async fn every_metric_that_is_documented_is_exported_and_nothing_else() {
    // With the recommended names, a unit that is not in the name of its metric would be appended to it.
    let exporter = PrometheusBuilder::new().with_recommended_naming(true).set_buckets(&[1.0]).unwrap();
    let recorder = exporter.build_recorder();
    let handle = recorder.handle();
    assert!(metrics::set_global_recorder(recorder).is_ok(), "another was installed before");
    describe_metrics();
    let locks = Memory::with_clock(Clock::tokio());
    others_wait(&locks).await;
    the_store_fails(&locks).await;
    locks_are_lost(&locks).await;
    locks.close().await;

    handle.run_upkeep();
    let text = handle.render();
    let mut documented = documented_metrics();
    for (_, labels) in documented.values_mut() {
        labels.insert("backend".to_owned(), ["memory".to_owned()].into());
    }
    assert_eq!(exported(&text), documented);
    assert_eq!(text.matches("# HELP ").count(), documented.len(), "each is described: {text}");
}

/// The metrics in a text of the exporter.
fn exported(text: &str) -> Metrics {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut metrics: Metrics =
        types.map(|(name, kind)| (name.to_owned(), (kind.to_owned(), BTreeMap::new()))).collect();
    for (name, rest) in text.lines().filter_map(|line| line.split_once('{')) {
        let (labels, _) = rest.split_once("\"}").unwrap();
        let (_, known) = metrics.get_mut(base(name)).unwrap();
        for (label, value) in labels.split("\",").map(|label| label.split_once("=\"").unwrap()) {
            if label != "le" {
                known.entry(label.to_owned()).or_default().insert(value.to_owned());
            }
        }
    }
    metrics
}

/// The metric to which a sample of a histogram belongs.
pub(crate) fn base(name: &str) -> &str {
    let of_histogram = ["_bucket", "_count", "_sum"].iter().find_map(|suffix| name.strip_suffix(suffix));
    of_histogram.unwrap_or(name)
}

async fn others_wait(locks: &Memory) {
    let held = locks.lock("k").await.unwrap();
    assert!(locks.contender().lock_for("k", Duration::from_secs(5)).await.is_err(), "busy");
    // A lease that is not old yet is handed off.
    held.release().await.unwrap();
    let held = locks.lock("k").await.unwrap();
    let (next, released) = tokio::join!(locks.lock("k"), held.release());
    released.unwrap();
    drop(next.unwrap());
}

async fn the_store_fails(locks: &Memory) {
    locks.fail_next(1, ErrorKind::Unavailable);
    let guard = locks.lock("k").await.unwrap();
    locks.fail_next(1, ErrorKind::Unavailable);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(guard.is_held(), "renewed after a failure");
    locks.fail_next(1, ErrorKind::Unavailable);
    assert!(guard.release().await.is_err(), "its outcome is unknown");
    locks.fail_next(1, ErrorKind::Backend);
    assert!(locks.lock("k").await.is_err(), "failed for good");
}

/// For every reason.
async fn locks_are_lost(locks: &Memory) {
    let short = LockOptions::new().ttl(Duration::from_secs(2));
    let lock = async |key: &str, options: &LockOptions| locks.lock_with(key, options).await.unwrap();
    let expires = lock("expires", &short.clone().renew(false)).await;
    assert_eq!(expires.lost().await, LossReason::Expired);
    let capped = lock("capped", &short.clone().max_hold(Duration::from_secs(1))).await;
    assert_eq!(capped.lost().await, LossReason::MaxHold);
    let forgotten = lock("forgotten", &short).await;
    locks.forget(forgotten.key());
    assert_eq!(forgotten.lost().await, LossReason::Stolen);
    let taken = lock("taken", &short).await;
    locks.contender().force_release(&LockKey::new("taken").unwrap()).await.unwrap();
    assert_eq!(taken.lost().await, LossReason::ForceReleased);
    let silent = lock("silent", &short).await;
    locks.silent_for(Duration::from_secs(10));
    assert_eq!(silent.lost().await, LossReason::Unreachable);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let other = locks.contender();
    let open = other.lock("open").await.unwrap();
    other.close().await;
    assert_eq!(open.lost().await, LossReason::Shutdown);
}

/// In the code of the published crates, so that also those are found that take a fault of a server.
#[test]
fn every_span_and_event_of_the_code_is_documented_and_nothing_else() {
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().replace('-', "_");
        if name != "testkit" {
            add_told(&folder.join("src"), &format!("leasehold_{name}"), &mut found);
        }
    }
    let documented = documented_events();
    assert!(documented.len() > 30, "the tables were not found");
    let undocumented: Vec<_> = found.difference(&documented).collect();
    let absent: Vec<_> = documented.difference(&found).collect();
    assert!(undocumented.is_empty() && absent.is_empty(), "undocumented: {undocumented:#?}\ngone: {absent:#?}");
}

/// Adds what the files of a folder tell. The suite emits nothing.
fn add_told(folder: &Path, by: &str, told: &mut BTreeSet<Told>) {
    for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with("conformance") {
            add_told(&path, by, told);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("tracing::") {
                add_told_in(text.parse().unwrap(), by, told);
            }
        }
    }
}

/// Adds `tracing::warn!(fields, "name")` and `tracing::debug_span!("name", fields)`.
fn add_told_in(code: TokenStream, by: &str, told: &mut BTreeSet<Told>) {
    let mut before = Vec::new();
    for token in code {
        if let TokenTree::Group(group) = &token {
            let called: String = before.iter().rev().take(5).rev().map(String::as_str).collect();
            let kind = called.strip_prefix("tracing::").and_then(|called| called.strip_suffix('!'));
            let level = kind.map_or("", |kind| kind.strip_suffix("_span").unwrap_or(kind));
            if ["error", "warn", "info", "debug", "trace"].contains(&level) {
                let (name, fields) = name_and_fields(group.stream());
                told.insert(Told { by: by.to_owned(), name, level: level.to_owned(), fields });
            }
            add_told_in(group.stream(), by, told);
        }
        before.push(token.to_string());
    }
}

fn name_and_fields(arguments: TokenStream) -> (String, BTreeSet<String>) {
    let (mut name, mut fields) = (String::new(), BTreeSet::new());
    let arguments: Vec<TokenTree> = arguments.into_iter().collect();
    for argument in arguments.split(|token| token.to_string() == ",") {
        if let [TokenTree::Literal(text)] = argument {
            // A text of several lines is one.
            name = text.to_string().trim_matches('"').split("\\\n").map(str::trim_start).collect();
        } else if let Some(field) = argument.iter().find(|token| matches!(token, TokenTree::Ident(_))) {
            fields.insert(field.to_string());
        }
    }
    (name, fields)
}
