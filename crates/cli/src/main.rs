//! `leasehold`: runs a command while holding a distributed lock, shows who holds a lock, and releases locks by force.
//!
//! This crate deals with processes, signals, terminals and messages. The locks are in the crate `leasehold`.

// The program's main job,
mod run;
// how it supervises the command,
mod ending;
mod supervise;
// how it starts, signals and stops the command,
mod child;
mod parent_death;
mod signals;
mod terminal;
// what it prints,
mod log;
mod report;
mod waiting;
mod wording;
// its command line and its exit codes,
mod args;
mod choice;
mod duration;
mod exit;
mod password;
mod stopwatch;
mod store_commands;
mod suggestion;
mod values;
// and the other commands.
mod admin;
#[cfg(target_os = "linux")]
mod agent;
mod bench;
mod describe;
mod detached;
mod doctor;
mod held;
mod hold;
mod lease_advice;
mod manual;
#[cfg(feature = "watch")]
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::args::{Cli, Command};
use crate::exit::{Failure, USAGE};
use crate::password::{others_can_read, redact_all};
use crate::report::Report;

fn main() -> ExitCode {
    let cli = match Cli::of_this_process() {
        Ok(cli) => cli,
        Err(refused) => return explain(&refused),
    };
    let report = Report::new(&cli.command);
    log::start(&cli.command, report);
    let codes = cli.command.codes();
    if let Some(warning) = cli.store.password_file.as_deref().and_then(others_can_read) {
        report.warn(&warning);
    }
    let done = match &cli.command {
        Command::Run(run) => on_runtime(run::run(run, &cli.store, codes, report)),
        Command::Hold(hold) => on_runtime(hold::hold(hold, &cli.store, codes, report)),
        #[cfg(target_os = "linux")]
        Command::Agent(agent) => on_runtime(agent::agent(agent, &cli.store, report)),
        Command::Acquire(acquire) => on_runtime(detached::acquire(acquire, &cli.store, report)),
        Command::Renew(renew) => on_runtime(detached::renew(renew, &cli.store, report)),
        Command::Release(release) => on_runtime(detached::release(release, &cli.store, report)),
        Command::Wait(wait) => on_runtime(detached::wait(wait, &cli.store, report)),
        Command::Inspect(inspect) => on_runtime(admin::inspect(inspect, &cli.store)),
        Command::List(list) => on_runtime(admin::list(list, &cli.store)),
        Command::ForceRelease(force) => on_runtime(admin::force_release(force, &cli.store)),
        #[cfg(feature = "watch")]
        Command::Watch(watch) => on_runtime(watch::watch(watch, &cli.store)),
        Command::Migrate => on_runtime(admin::migrate(&cli.store)),
        Command::Gc(gc) => on_runtime(admin::gc(gc, &cli.store)),
        Command::Doctor(doctor) => on_runtime(doctor::doctor(doctor, &cli.store)),
        Command::Bench(bench) => on_runtime(bench::bench(bench, &cli.store)),
        Command::Heal => on_runtime(doctor::heal(&cli.store)),
        Command::Backends(backends) => describe::backends(backends),
        Command::Completions(completions) => describe::completions(completions),
        Command::Man(man) => describe::man(man),
    };
    ExitCode::from(done.unwrap_or_else(|failure| report.failed(&failure, codes)))
}

/// Runs `work` on this thread alone: the command must be a child of the main thread, because Linux sends the
/// parent-death signal when the *thread* that forked ends.
fn on_runtime(work: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    let done = runtime.block_on(work);
    // A task that still runs must not keep the caller waiting: what had to be finished was awaited.
    runtime.shutdown_background();
    done
}

/// Prints clap's message, without any password that was typed in a place where clap did not expect one.
fn explain(refused: &clap::Error) -> ExitCode {
    let text = redact_all(&refused.render().to_string(), std::env::args_os());
    let (written, code) = if refused.use_stderr() {
        (io::stderr().write_all(text.as_bytes()), USAGE)
    } else {
        (io::stdout().write_all(text.as_bytes()), 0)
    };
    ExitCode::from(if written.is_ok() { code } else { exit::SYSTEM })
}
