//! What a recorder of metrics and a subscriber of traces get to see of Leasehold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Recorder, SharedString, Unit};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::document::{Metric, Told};

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) metrics: BTreeMap<String, Metric>,
    pub(crate) spans: BTreeSet<Told>,
    pub(crate) events: BTreeSet<Told>,
    /// Kind and unit of each metric that was described.
    pub(crate) described: BTreeMap<String, (String, String)>,
}

/// Runs `work` on a runtime of this thread, and gives what was seen meanwhile of the crates that begin with `leasehold_core`.
pub(crate) fn seen_of<T>(work: impl Future<Output = T>) -> (Seen, T) {
    // One at a time: a place in the code that is met for the first time beside a subscriber of another thread may be taken for one
    // that nobody wants to see.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let witness = Witness::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let done = metrics::with_local_recorder(&witness, || {
        tracing::subscriber::with_default(witness.clone(), || runtime.block_on(work))
    });
    drop(runtime);
    let seen = std::mem::take(&mut *witness.seen());
    (seen, done)
}

#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Seen>>, Arc<AtomicU64>);

impl Witness {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, key: &Key, kind: &str) {
        let mut seen = self.seen();
        let metric = seen.metrics.entry(key.name().to_owned());
        let metric =
            metric.or_insert_with(|| Metric { kind: kind.to_owned(), unit: String::new(), labels: BTreeMap::new() });
        for label in key.labels() {
            metric.labels.entry(label.key().to_owned()).or_default().insert(label.value().to_owned());
        }
    }

    fn describe(&self, key: &KeyName, kind: &str, unit: Option<Unit>) {
        let unit = unit.map_or("", |unit| unit.as_str()).to_owned();
        self.seen().described.insert(key.as_str().to_owned(), (kind.to_owned(), unit));
    }
}

impl Recorder for Witness {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, "counter", unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, "gauge", unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&key, "histogram", unit);
    }

    fn register_counter(&self, key: &Key, _: &metrics::Metadata<'_>) -> Counter {
        self.note(key, "counter");
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &metrics::Metadata<'_>) -> Gauge {
        self.note(key, "gauge");
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &metrics::Metadata<'_>) -> Histogram {
        self.note(key, "histogram");
        Histogram::noop()
    }
}

impl Subscriber for Witness {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("leasehold_core")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let told = told(span.metadata(), span.metadata().name().to_owned());
        self.seen().spans.insert(told);
        Id::from_u64(self.1.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        let told = told(event.metadata(), message.0);
        self.seen().events.insert(told);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn told(metadata: &Metadata<'_>, name: String) -> Told {
    let fields = metadata.fields().iter().map(|field| field.name().to_owned());
    Told {
        name,
        level: metadata.level().to_string().to_lowercase(),
        fields: fields.filter(|field| field != "message").collect(),
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
