//! `leasehold`: runs a command while holding a distributed lock, shows who holds one, and takes one away.
//!
//! Everything here is about processes, terminals and words; what a lock is, is in `leasehold-core`.

// In reading order: the program's main job,
mod run;
// how it stays with the command,
mod ending;
mod watch;
// what a command is to it,
mod child;
mod parent_death;
mod signals;
mod terminal;
// what it says while it works,
mod log;
mod report;
mod waiting;
mod words;
// how it is told what to do,
mod address;
mod args;
mod choice;
mod duration;
mod exit;
// and the smaller commands.
mod admin;
mod describe;
mod doctor;
// The stores that it can be built with.
mod kind;
mod kinds;
mod store;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::address::redact_all;
use crate::args::{Cli, Command};
use crate::exit::{Failure, USAGE};
use crate::report::Report;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refused) => return explain(&refused),
    };
    log::start(&cli.command);
    let report = Report::new(&cli.command);
    let codes = cli.command.codes();
    let done = match &cli.command {
        Command::Run(run) => on_runtime(run::run(run, &cli.store, codes, report)),
        Command::Inspect(inspect) => on_runtime(admin::inspect(inspect, &cli.store)),
        Command::List(list) => on_runtime(admin::list(list, &cli.store)),
        Command::ForceRelease(force) => on_runtime(admin::force_release(force, &cli.store)),
        Command::Migrate(_) => on_runtime(admin::migrate(&cli.store)),
        Command::Gc(gc) => on_runtime(admin::gc(gc, &cli.store)),
        Command::Doctor(_) => on_runtime(doctor::doctor(&cli.store)),
        Command::Heal(_) => on_runtime(doctor::heal(&cli.store)),
        Command::Backends(backends) => describe::backends(backends),
        Command::Completions(completions) => describe::completions(completions),
        Command::Man(man) => describe::man(man),
    };
    ExitCode::from(done.unwrap_or_else(|failure| report.failed(&failure, codes)))
}

/// Runs on this thread alone: the command must be a child of the main thread, because Linux sends the parent-death
/// signal when the *thread* that forked ends.
fn on_runtime(work: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let done = runtime.block_on(work);
    // Nothing that still runs in there may keep the caller waiting: what had to be finished was awaited.
    runtime.shutdown_background();
    done
}

/// Prints what clap has to say, without any password that was typed in a place where clap did not expect it.
fn explain(refused: &clap::Error) -> ExitCode {
    let text = redact_all(&refused.render().to_string(), std::env::args_os());
    let (written, code) = if refused.use_stderr() {
        (io::stderr().write_all(text.as_bytes()), USAGE)
    } else {
        (io::stdout().write_all(text.as_bytes()), 0)
    };
    ExitCode::from(if written.is_ok() { code } else { exit::SYSTEM })
}
