//! What the dashboard and the alert rules ask for, beside the metrics of `docs/observability.md`.

use std::collections::BTreeSet;
use std::fs;

use leasehold_testkit::test;
use serde_json::Value;

use crate::observability::{Metrics, base, documented_metrics, root};

#[test]
fn the_dashboard_and_the_alerts_ask_for_what_is_documented_and_leave_nothing_out() {
    let documented = documented_metrics();
    let queries = [queries_of_panels(), queries_of_alerts()].concat();
    let asked: BTreeSet<&str> = queries.iter().flat_map(|query| metrics_of(query, &documented)).collect();
    assert_eq!(asked, documented.keys().map(String::as_str).collect());
}

/// The metrics of a query, whose labels and values are documented. Reads as much of the language as is used here.
fn metrics_of<'q>(query: &'q str, documented: &Metrics) -> BTreeSet<&'q str> {
    assert_eq!(query.matches('(').count(), query.matches(')').count(), "{query}");
    let groups = query.split("by (").skip(1).flat_map(|rest| rest.split(')').next().unwrap_or_default().split(", "));
    let mut metrics = BTreeSet::new();
    for (at, _) in query.match_indices("leasehold_") {
        let end = query[at..].find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (name, rest) = query[at..].split_at(end.unwrap_or(query.len() - at));
        let (kind, labels) = documented.get(base(name)).unwrap_or_else(|| panic!("{query}: there is no {name}"));
        assert_eq!(kind == "histogram", base(name) != name, "{query}: {name}");
        // A counter that is not asked for as a rate only grows, unless it is asked for as new.
        let is_rate = ["rate(", "increase("].iter().any(|of| query[..at].ends_with(of));
        assert!(kind == "gauge" || is_rate || query.contains(" unless "), "{query}: {name}");
        let selectors = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).unwrap_or_default().0;
        for (label, values) in selectors.split(", ").filter_map(|selector| selector.split_once(['=', '!'])) {
            let known = labels.get(label).unwrap_or_else(|| panic!("{query}: {name} has no label {label}"));
            let mut values = values.trim_matches(['=', '~', '"']).split('|');
            assert!(values.all(|value| value == "$backend" || known.contains(value)), "{query}: {label}");
        }
        for label in groups.clone() {
            // The first one is of the server that scrapes.
            let is_there = label == "job" || label == "le" && name.ends_with("_bucket") || labels.contains_key(label);
            assert!(is_there, "{query}: {name} has no label {label}");
        }
        metrics.insert(base(name));
    }
    assert!(!metrics.is_empty(), "{query} asks for nothing");
    metrics
}

/// The queries of the panels, each of which has what Grafana needs to import it.
fn queries_of_panels() -> Vec<String> {
    let dashboard = fs::read_to_string(root().join("docs/dashboards/leasehold.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    assert!(dashboard["title"] == "Leasehold" && dashboard["uid"].is_string(), "{dashboard}");
    assert!(dashboard["schemaVersion"].as_u64() >= Some(30) && dashboard["id"].is_null(), "an id is of one Grafana");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<_> = variables.iter().map(|variable| &variable["name"]).collect();
    assert_eq!(variables, ["datasource", "backend"]);
    let (mut queries, mut ids, mut places) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(panel["type"] == "timeseries" && panel["title"].is_string(), "{panel}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{panel}");
        let [x, y, width] = ["x", "y", "w"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + width <= 24 && places.insert((x, y)) && ids.insert(panel["id"].as_u64()), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            assert!(target["refId"].is_string() && target["datasource"]["uid"] == "${datasource}", "{target}");
            queries.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    assert!(queries.len() >= 10, "{queries:?}");
    queries
}

/// The expressions of the alert rules, each of which has the other fields of a rule.
fn queries_of_alerts() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/dashboards/alerts.yml")).unwrap();
    let rules = text.split("      - alert: ").skip(1).map(|rule| {
        let field = |name: &str| rule.lines().find_map(|line| line.trim_start().strip_prefix(name)).map(str::trim);
        assert!(field("severity:").is_some_and(|is| ["info", "warning", "critical"].contains(&is)), "{rule}");
        assert!(field("summary:").is_some_and(|text| !text.is_empty()), "{rule}");
        field("expr:").unwrap_or_else(|| panic!("no query in {rule}")).to_owned()
    });
    let queries: Vec<String> = rules.collect();
    assert!(queries.len() >= 6, "{text}");
    queries
}
