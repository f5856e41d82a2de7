use std::collections::BTreeSet;
#[cfg(feature = "watch")]
use std::io::IsTerminal;
use std::io::{self, Write};
use std::sync::Mutex;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::Command;
use crate::report::Report;

/// The target of the events that are told also who asked for no log.
const TOLD_TO_ALL: &str = "leasehold_redis::client::clear_text";

/// Logs the library's events to standard error if the user asked for it with `-vv` or `RUST_LOG`; otherwise only a password that
/// goes over a network in clear text is warned of. With `run --json` it logs no more than that, because all lines must be JSON, and
/// a line would disturb the table of `watch`.
pub(crate) fn start(command: &Command, report: Report) {
    let (verbose, quiet) = match command {
        Command::Run(run) => (run.verbose, run.json),
        #[cfg(feature = "watch")]
        Command::Watch(watch) => (0, !watch.json && io::stderr().is_terminal()),
        _ => (0, false),
    };
    let asked = std::env::var("RUST_LOG").ok().and_then(|filter| filter.parse::<Targets>().ok());
    let wanted = asked.or_else(|| (verbose > 1).then(|| Targets::new().with_target("leasehold", LevelFilter::DEBUG)));
    let registry = tracing_subscriber::registry();
    let lines = tracing_subscriber::fmt::layer().with_ansi(false);
    // It fails only if there is a subscriber already, and nothing else in this program installs one.
    let _ = if let Some(targets) = wanted.filter(|_| !quiet) {
        registry.with(targets).with(lines.with_writer(io::stderr)).try_init()
    } else {
        let targets = Targets::new().with_target(TOLD_TO_ALL, LevelFilter::WARN);
        let warnings = Mutex::new(Warnings { report, told: BTreeSet::new() });
        registry
            .with(targets)
            .with(lines.without_time().with_level(false).with_target(false).with_writer(warnings))
            .try_init()
    };
}

/// Each line becomes a warning of the program, once: some commands connect more than once.
struct Warnings {
    report: Report,
    told: BTreeSet<String>,
}

impl Write for Warnings {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        if self.told.insert(text.clone()) {
            self.report.warn(&text);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
