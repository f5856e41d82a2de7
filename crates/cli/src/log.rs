use std::io;
#[cfg(feature = "watch")]
use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::Command;

/// Logs the library's events to standard error if the user asked for it with `-vv` or `RUST_LOG`; otherwise it costs
/// nothing. With `run --json` it logs nothing, because all lines must be JSON, and a line would disturb the table of `watch`.
pub(crate) fn start(command: &Command) {
    let (verbose, quiet) = match command {
        Command::Run(run) => (run.verbose, run.json),
        #[cfg(feature = "watch")]
        Command::Watch(watch) => (0, !watch.json && io::stderr().is_terminal()),
        _ => (0, false),
    };
    let asked = std::env::var("RUST_LOG").ok().and_then(|filter| filter.parse::<Targets>().ok());
    let wanted = asked.or_else(|| (verbose > 1).then(|| Targets::new().with_target("leasehold", LevelFilter::DEBUG)));
    if let Some(targets) = wanted.filter(|_| !quiet) {
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
        // It fails only if there is a subscriber already, and nothing else in this program installs one.
        let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
    }
}
