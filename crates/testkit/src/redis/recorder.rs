use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Metadata, Subscriber};

/// What the driver logs, in the whole program.
static LOGGED: Mutex<String> = Mutex::new(String::new());

/// Keeps what is logged from its start on, to be searched.
#[derive(Debug)]
pub struct Recorder {
    /// Where its part of what the driver logged begins.
    from: usize,
    traced: Arc<Mutex<String>>,
    _guard: DefaultGuard,
}

impl Recorder {
    /// For this thread, until it drops; of the driver, what it logs in the whole program.
    pub fn start() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            log::set_logger(&Logged).expect("no other logger");
            log::set_max_level(log::LevelFilter::Trace);
        });
        let traced = Arc::default();
        let guard = set_default(Traced(Arc::clone(&traced)));
        let from = logged().len();
        Self { from, traced, _guard: guard }
    }

    /// All of it.
    pub fn recorded(&self) -> String {
        lock(&self.traced).clone() + &logged()[self.from..]
    }
}

fn logged() -> MutexGuard<'static, String> {
    lock(&LOGGED)
}

fn lock(text: &Mutex<String>) -> MutexGuard<'_, String> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Logged;

impl log::Log for Logged {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let _ = writeln!(logged(), "{}", record.args());
    }

    fn flush(&self) {}
}

struct Traced(Arc<Mutex<String>>);

impl Subscriber for Traced {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Text(&mut lock(&self.0)));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Text(&mut lock(&self.0)));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Text(&mut lock(&self.0)));
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
