//! The metrics of `docs/observability.md`, beside what the code emits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::{Admin, Clock, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, Memory, describe_metrics};
use leasehold_testkit::test;
use metrics_exporter_prometheus::PrometheusBuilder;

/// What was measured: the kind of each metric, and its labels with their values.
pub(crate) type Metrics = BTreeMap<String, (String, BTreeMap<String, BTreeSet<String>>)>;

pub(crate) fn documented_metrics() -> Metrics {
    let labels = |cell: &str| cell.split(';').map(|label| split_first(codes(label))).collect();
    let metrics = rows("| metric |").map(|row| (code(&row[0]), (row[1].clone(), labels(&row[3]))));
    metrics.collect()
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
