//! The tables of `docs/observability.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What has a name and fields: a span or an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) level: String,
    pub(crate) fields: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    pub(crate) kind: String,
    pub(crate) unit: String,
    /// The labels, with their values where the page lists them.
    pub(crate) labels: BTreeMap<String, BTreeSet<String>>,
}

pub(crate) struct Document {
    pub(crate) metrics: BTreeMap<String, Metric>,
    pub(crate) spans: BTreeSet<Told>,
    pub(crate) events: BTreeSet<Told>,
    /// Those of one kind of store, with the name of the crate.
    pub(crate) events_of_stores: BTreeSet<(String, Told)>,
}

impl Document {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(root().join("docs/observability.md")).expect("the page is there");
        let metrics = rows(&text, "| metric |").map(|row| {
            let labels = row[3].split(';').map(|label| {
                let mut names = codes(label).into_iter();
                (names.next().expect("a label"), names.collect())
            });
            (code(&row[0]), Metric { kind: row[1].clone(), unit: row[2].clone(), labels: labels.collect() })
        });
        let told = |row: &[String], fields: usize| Told {
            name: code(&row[0]),
            level: row[1].clone(),
            fields: codes(&row[fields]).into_iter().collect(),
        };
        let document = Self {
            metrics: metrics.collect(),
            spans: rows(&text, "| span |").map(|row| told(&row, 2)).collect(),
            events: rows(&text, "| event | level | fields").map(|row| told(&row, 2)).collect(),
            events_of_stores: rows(&text, "| event | level | crate")
                .map(|row| (code(&row[2]), told(&row, 3)))
                .collect(),
        };
        assert!(document.metrics.len() >= 10 && document.spans.len() == 3, "the tables were not found");
        assert!(document.events.len() >= 10 && document.events_of_stores.len() >= 10, "the tables were not found");
        document
    }
}

/// The rows of the table with this head, as cells.
fn rows<'t>(text: &'t str, head: &str) -> impl Iterator<Item = Vec<String>> + use<'t> {
    let (_, table) = text.split_once(head).unwrap_or_else(|| panic!("no table begins with {head}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
}

/// What is between backticks.
fn codes(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn code(text: &str) -> String {
    codes(text).into_iter().next().unwrap_or_else(|| panic!("no name in {text:?}"))
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("two folders below the workspace's").to_path_buf()
}
