//! Everything that is traced, written down.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Every span and event with its fields, in their order, and in which span they were, as a subscriber writes it that adds
/// nothing of its own.
#[derive(Clone, Default)]
pub(crate) struct Story(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    lines: Vec<String>,
    /// The names of the spans, in the order of their ids.
    names: Vec<&'static str>,
    /// The spans that were entered last.
    entered: Vec<&'static str>,
}

impl Story {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().lines.clone()
    }
}

/// The fields, behind what they are of.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Story {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("leasehold")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut told = self.0.lock().unwrap();
        let name = span.metadata().name();
        let mut line = Line(format!("{name} in [{}]:", told.entered.last().unwrap_or(&"")));
        span.record(&mut line);
        told.lines.push(line.0);
        told.names.push(name);
        Id::from_u64(told.names.len() as u64)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line("recorded".to_owned());
        values.record(&mut line);
        self.0.lock().unwrap().lines.push(line.0);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut told = self.0.lock().unwrap();
        let mut line = Line(format!("event in [{}]:", told.entered.last().unwrap_or(&"")));
        event.record(&mut line);
        told.lines.push(line.0);
    }
    fn enter(&self, id: &Id) {
        let mut told = self.0.lock().unwrap();
        let name = told.names[usize::try_from(id.into_u64()).unwrap() - 1];
        told.entered.push(name);
    }
    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
}
