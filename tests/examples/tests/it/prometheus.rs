//! The example `monitored`, scraped over HTTP, beside what the dashboard and the alert rules ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use leasehold::{Admin, LockKey};
use leasehold_testkit::launch::free_port;
use leasehold_testkit::redis::Server;
use leasehold_testkit::{KilledOnDrop, PATIENCE, eventually, needs, test};
use serde_json::Value;

use crate::document::{Document, root};
use crate::promql::Query;

/// The labels of each sample that was scraped, by its name.
type Samples = BTreeMap<String, BTreeSet<String>>;

#[test(multi_thread)]
async fn the_dashboard_and_the_alerts_ask_for_what_is_exported() {
    let samples = scraped().await;
    let document = Document::read();
    let dashboard = fs::read_to_string(root().join("docs/dashboards/leasehold.json")).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let queries: Vec<String> = queries_of_panels(&dashboard).into_iter().chain(queries_of_alerts()).collect();
    assert!(queries.len() >= 20, "{queries:#?}");
    for query in &queries {
        check(query, &samples, &document);
    }
    // No metric of the page is left out of the dashboard.
    let asked: BTreeSet<String> =
        queries.iter().flat_map(|query| Query::read(query).metrics).map(|(name, _)| base(&name).to_owned()).collect();
    assert_eq!(asked, document.metrics.keys().cloned().collect());
}

fn check(query: &str, samples: &Samples, document: &Document) {
    let parsed = Query::read(query);
    assert!(!parsed.metrics.is_empty(), "{query} asks for nothing");
    assert_eq!(query.matches('(').count(), query.matches(')').count(), "{query}");
    for (name, selectors) in &parsed.metrics {
        let labels = samples.get(name).unwrap_or_else(|| panic!("{query}: no {name} among {samples:#?}"));
        let metric = &document.metrics[base(name)];
        // A counter that is not asked for as a rate only grows, unless it is asked for as new.
        let rate = ["rate(", "increase("].iter().any(|of| query.contains(&format!("{of}{name}")));
        assert!(metric.kind == "gauge" || rate || query.contains(" unless "), "{query}");
        for (label, texts) in selectors {
            assert!(labels.contains(label), "{query}: {name} has no label {label}");
            let known = |text: &String| text == "$backend" || metric.labels[label].contains(text);
            assert!(texts.iter().all(known), "{query}: {label} is never one of {texts:?}");
        }
        // The last one is of the server that scrapes.
        let mut grouped = parsed.groups.iter().filter(|label| *label != "job");
        assert!(grouped.all(|label| labels.contains(label)), "{query}: {name} has {labels:?}");
    }
}

/// The metric to which a sample of a histogram belongs.
fn base(name: &str) -> &str {
    let of_histogram = ["_bucket", "_count", "_sum"].iter().find_map(|suffix| name.strip_suffix(suffix));
    of_histogram.unwrap_or(name)
}

/// What a dashboard needs so that Grafana can import it, and the queries of its panels.
fn queries_of_panels(dashboard: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| panic!("{value} is no text"), str::to_owned);
    assert!(text(&dashboard["title"]) == "Leasehold" && !text(&dashboard["uid"]).is_empty());
    assert!(dashboard["schemaVersion"].as_u64() >= Some(30) && dashboard["id"].is_null(), "an id is of one Grafana");
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let types: Vec<_> = variables.iter().map(|variable| (text(&variable["name"]), text(&variable["type"]))).collect();
    assert_eq!(types, [("datasource", "datasource"), ("backend", "query")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<_> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert!(panels.len() >= 8 && ids.len() == panels.len(), "each panel has an id of its own");
    let mut queries = Vec::new();
    let mut places = BTreeSet::new();
    for panel in panels {
        assert_eq!(panel["type"], "timeseries", "{panel}");
        assert!(!text(&panel["title"]).is_empty() && !text(&panel["fieldConfig"]["defaults"]["unit"]).is_empty());
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a place"));
        assert!(w > 0 && h > 0 && x + w <= 24 && places.insert((x, y)), "{panel}");
        for target in panel["targets"].as_array().expect("queries") {
            assert!(!text(&target["refId"]).is_empty() && target["datasource"]["uid"] == "${datasource}", "{target}");
            queries.push(text(&target["expr"]).replace("$__rate_interval", "5m"));
        }
    }
    queries
}

/// The expressions of the alert rules, each of which has the other fields of a rule.
fn queries_of_alerts() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/dashboards/alerts.yml")).expect("the alert rules");
    let rules: Vec<&str> = text.split("      - alert: ").skip(1).collect();
    let field = |rule: &str, name: &str| {
        let line = rule.lines().find_map(|line| line.trim_start().strip_prefix(name)).map(str::trim);
        line.filter(|value| !value.is_empty()).unwrap_or_else(|| panic!("no {name} in {rule}")).to_owned()
    };
    assert!(rules.len() >= 6, "{text}");
    rules
        .into_iter()
        .map(|rule| {
            let severity = field(rule, "severity:");
            assert!(["info", "warning", "critical"].contains(&severity.as_str()), "{severity}");
            assert!(!field(rule, "summary:").is_empty());
            field(rule, "expr:")
        })
        .collect()
}

/// What the example exports, after a time in which all went well and one in which its server was silent.
async fn scraped() -> Samples {
    let server = needs("redis-server", Server::start(&[]).await);
    let address = format!("127.0.0.1:{}", free_port().expect("a port"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_monitored"));
    command.args([&server.url(), &address]).stderr(Stdio::null());
    let _program = KilledOnDrop::spawn(&mut command).expect("the example");
    let exports = async |what: &str, names: &[&str]| {
        let all = async || names.iter().all(|name| scrape(&address).lines().any(|line| line.starts_with(name)));
        eventually(what, all).await;
    };
    let well = [
        "leasehold_acquire_wait_seconds_bucket",
        "leasehold_guards",
        "leasehold_contended_total",
        "leasehold_renewals_total",
    ];
    exports("locks are taken", &well).await;
    exports("a hand-off", &["leasehold_local_handoffs_total", "leasehold_hold_seconds_sum"]).await;
    let (operator, key) = (leasehold::connect(&server.url()).await.expect("a connection"), LockKey::new("long"));
    let key = key.expect("a key");
    let lost = async || {
        operator.force_release(&key).await.expect("a forced release");
        scrape(&address).contains("leasehold_losses_total")
    };
    eventually("a lock is lost", lost).await;
    operator.close().await;
    server.pause();
    exports("the silence is noticed", &["leasehold_attempt_failures_total", "leasehold_release_failures_total"]).await;
    server.resume();
    let mut samples = Samples::new();
    for line in scrape(&address).lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, labels) = line.split_once('{').unwrap_or_else(|| panic!("{line} has no labels"));
        let labels = labels.split_once('}').expect("an end").0.split("\",").filter_map(|label| label.split_once('='));
        samples.entry(name.to_owned()).or_default().extend(labels.map(|(label, _)| label.to_owned()));
    }
    samples
}

/// What the exporter answers; nothing before it listens.
fn scrape(address: &str) -> String {
    let mut text = String::new();
    let Ok(mut stream) = TcpStream::connect(address) else { return text };
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    asked.and_then(|()| stream.read_to_string(&mut text)).expect("an answer");
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}
