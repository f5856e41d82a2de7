//! The metrics, labels and values that a query of Prometheus names. Reads as much of the language as the dashboard and the alerts use.

use leasehold_testkit::test;
use std::collections::BTreeSet;

/// A label, and the texts that it is compared with.
type Selector = (String, BTreeSet<String>);

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// Metrics, each with its selectors.
    pub(crate) metrics: Vec<(String, Vec<Selector>)>,
    /// The labels by which sums are made.
    pub(crate) groups: BTreeSet<String>,
}

impl Query {
    pub(crate) fn read(text: &str) -> Self {
        let mut query = Self::default();
        for (at, _) in text.match_indices("leasehold_") {
            let end = text[at..].find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let (name, rest) = text[at..].split_at(end.unwrap_or(text.len() - at));
            let selectors = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            query.metrics.push((name.to_owned(), selectors.map(|(inside, _)| labels(inside)).unwrap_or_default()));
        }
        for (_, rest) in text.match_indices("by (").map(|(at, by)| text.split_at(at + by.len())) {
            let (inside, _) = rest.split_once(')').unwrap_or_else(|| panic!("{text}: a list that does not end"));
            query.groups.extend(inside.split(',').map(|label| label.trim().to_owned()));
        }
        query
    }
}

fn labels(selectors: &str) -> Vec<Selector> {
    let selectors = selectors.split(',').map(|selector| {
        let selector = selector.trim();
        let end = selector.find(['=', '!']).unwrap_or_else(|| panic!("{selector}: no comparison"));
        let (label, text) = selector.split_at(end);
        let text = text.trim_start_matches(['=', '!', '~']).trim_matches('"');
        (label.to_owned(), text.split('|').map(str::to_owned).collect())
    });
    selectors.collect()
}

#[test]
fn names_are_found_in_queries() {
    let query = Query::read(
        "sum by (job, le) (rate(leasehold_a_bucket{backend=~\"$backend\", reason!~\"x|y\"}[5m])) > 2 * max by (job) (leasehold_b)",
    );
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<BTreeSet<_>>();
    let selectors = vec![("backend".to_owned(), texts(&["$backend"])), ("reason".to_owned(), texts(&["x", "y"]))];
    assert_eq!(query.metrics, [("leasehold_a_bucket".to_owned(), selectors), ("leasehold_b".to_owned(), Vec::new())]);
    assert_eq!(query.groups, texts(&["job", "le"]));
}
