//! Keeps everything that is logged, to be searched.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Metadata, Subscriber};

/// What the driver logs, in the whole program.
static LOGGED: Mutex<String> = Mutex::new(String::new());

pub(crate) struct Recorder {
    traced: Arc<Mutex<String>>,
    _guard: DefaultGuard,
}

impl Recorder {
    /// For this thread, until it drops.
    pub(crate) fn start() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            log::set_logger(&Logged).expect("no other logger");
            log::set_max_level(log::LevelFilter::Trace);
        });
        let traced = Arc::default();
        let guard = set_default(Traced(Arc::clone(&traced)));
        Self { traced, _guard: guard }
    }

    pub(crate) fn recorded(&self) -> String {
        let logged = LOGGED.lock().expect("no panic while logging").clone();
        self.traced.lock().expect("no panic while tracing").clone() + &logged
    }
}

struct Logged;

impl log::Log for Logged {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut logged = LOGGED.lock().expect("no panic while logging");
        let _ = writeln!(logged, "{}", record.args());
    }

    fn flush(&self) {}
}

struct Traced(Arc<Mutex<String>>);

impl Traced {
    fn text(&self) -> std::sync::MutexGuard<'_, String> {
        self.0.lock().expect("no panic while tracing")
    }
}

impl Subscriber for Traced {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Text(&mut self.text()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Text(&mut self.text()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Text(&mut self.text()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Text<'t>(&'t mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = writeln!(self.0, "{field}={value:?}");
    }
}
