//! `cargo xtask bench`: measures what a lock costs, beside bare round trips (the floor) and beside other locks (peers).
//!
//! All sides of a workload take turns in the same run, and the result is the ratio of their figures. A run never fails because
//! it is slow. It fails if a lock let two tasks hold a key at the same time, or if a token did not grow.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the command line")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people: counts and times of a run are far below 2^52"
)]

// A module imports only from modules further down: the workloads,
mod table;
// those of them that are no comparison of loops,
mod held;
mod others;
mod readers;
mod renewals;
// what all others are, on which stores, beside which locks in other languages,
mod comparison;
mod peers;
mod servers;
// how they are run,
mod harness;
mod job;
mod load;
// the locks that take part,
mod contenders;
// and the results.
mod log;
mod machine;
mod plots;
mod report;

use std::process::ExitCode;

use clap::Parser;

use crate::comparison::Part;
use crate::load::{Pace, Result};
use crate::report::Report;
use crate::servers::{On, Store};

/// Measures Leasehold beside bare round trips and other locks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// Fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Also rewrite RESULTS.md and the plots that the READMEs show
    #[arg(long, conflicts_with_all = ["quick", "workloads"])]
    record: bool,
    /// Only these workloads; by default all that the machine can run
    #[arg(value_parser = known)]
    workloads: Vec<String>,
    /// Run a load for a parent process
    #[arg(long, hide = true, value_name = "LOAD")]
    child: Option<String>,
    /// Make one measurement for a parent process
    #[arg(long, hide = true, value_name = "TASK")]
    child_task: Option<String>,
    /// The flag that `cargo bench` adds
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let child = arguments.child.as_deref().map(job::run_as_child);
    if let Some(done) = child.or_else(|| arguments.child_task.as_deref().map(held::run_as_child)) {
        // The parent reads one line, an answer or an error.
        done.as_ref().err().into_iter().for_each(|error| println!("{error}"));
        return if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let pace = if arguments.quick { Pace::QUICK } else { Pace::FULL };
    let (report, mut broken) = run(&arguments.workloads, pace);
    print!("{}", report::table(&report.rows));
    for note in &report.notes {
        println!("{note}");
    }
    let written = write(&report, arguments.record && broken.is_empty());
    broken.extend(written.err().map(|error| format!("the report: {error}")));
    for line in &broken {
        eprintln!("broken: {line}");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(report: &Report, record: bool) -> Result<()> {
    let output = machine::output();
    plots::draw(&report.curves, &output)?;
    report::write_json(&report.rows, &output.join("report.json"))?;
    println!("written: {}", output.display());
    if record {
        plots::draw(&report.curves, &machine::package().join("plots"))?;
        report::write_results(report, &machine::package().join("RESULTS.md"))?;
    }
    Ok(())
}

/// Runs the chosen workloads. A workload that fails does not end the run.
fn run(wanted: &[String], pace: Pace) -> (Report, Vec<String>) {
    let (mut report, mut broken) = (Report::default(), Vec::new());
    let table = table::all(pace);
    for parts in table.chunk_by(|one, other| one.id == other.id) {
        let id = parts[0].id;
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == id) {
            eprintln!("{id} …");
            match measured(parts) {
                Ok(found) => report.extend(found),
                Err(error) => broken.push(format!("{id}: {error}")),
            }
        }
    }
    (report, broken)
}

/// Measures the parts of a workload. Those that follow each other on stores of one kind share one.
fn measured(parts: &[Part]) -> Result<Report> {
    let mut report = Report::default();
    let mut last: Option<(On, Option<Store>)> = None;
    for part in parts {
        if last.as_ref().is_none_or(|(on, _)| *on != part.on) {
            // One at a time.
            drop(last.take());
            let started = Store::start(part.on).map_err(|why| report.extend(part.absent(&why.to_string())));
            last = Some((part.on, started.ok()));
        }
        // Of what is absent, that is noted.
        if let Some((_, Some(store))) = &last {
            report.extend(part.run(store)?);
        }
    }
    Ok(report)
}

fn known(id: &str) -> Result<String, String> {
    let mut ids: Vec<&str> = table::all(Pace::QUICK).iter().map(|part| part.id).collect();
    ids.dedup();
    if ids.contains(&id) { Ok(id.to_owned()) } else { Err(format!("the workloads are {}", ids.join(", "))) }
}
