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
mod batches;
mod growth;
mod mysql;
mod program;
mod renewals;
mod two_down;
// what all others are, on which stores, beside which locks in other languages,
mod comparison;
mod peers;
mod servers;
mod work;
// how they are run,
mod agent;
mod child_process;
mod child_task;
mod harness;
mod job;
mod load;
mod pace;
// the locks that take part,
mod contenders;
// and the results.
mod log;
mod machine;
mod plots;
mod report;

use std::process::ExitCode;

use clap::Parser;

use crate::child_task::ChildTask;
use crate::harness::Row;
use crate::load::Result;
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::{On, Store};
use crate::table::{Part, TABLE};

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
    if let Some(done) = child.or_else(|| arguments.child_task.as_deref().map(run_child_task)) {
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

/// Makes the measurement that a parent process asked for, and prints its answer.
fn run_child_task(task: &str) -> Result<()> {
    let runtime = job::runtime(0)?;
    let answer = match serde_json::from_str(task)? {
        ChildTask::Hold { url, leases, seconds } => {
            serde_json::to_string(&runtime.block_on(renewals::hold_and_watch(&url, leases, seconds))?)?
        }
        ChildTask::HoldByTasks { url, leases, seconds } => {
            serde_json::to_string(&runtime.block_on(renewals::hold_by_tasks(&url, leases, seconds))?)?
        }
        ChildTask::Wait { url, waiters } => {
            serde_json::to_string(&runtime.block_on(growth::bytes_per_waiter(&url, waiters))?)?
        }
    };
    println!("{answer}");
    Ok(())
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
    let mut report = Report::default();
    let mut broken = Vec::new();
    for workload in TABLE.iter().filter(|workload| wanted.is_empty() || wanted.iter().any(|id| id == workload.id)) {
        eprintln!("{} …", workload.id);
        match measured(workload.id, (workload.parts)(pace), pace) {
            Ok(found) => report.extend(found),
            Err(error) => broken.push(format!("{}: {error}", workload.id)),
        }
    }
    (report, broken)
}

/// Measures the parts of a workload. Those that follow each other on stores of one kind share one.
fn measured(id: &'static str, parts: Vec<Part>, pace: Pace) -> Result<Report> {
    let mut report = Report::default();
    let mut last: Option<(On, Option<Store>)> = None;
    for part in parts {
        let on = match &part {
            Part::Comparison(comparison) => Some(comparison.on),
            Part::On(on, _) => Some(*on),
            Part::Other(_) => None,
        };
        if last.as_ref().is_none_or(|(started, _)| Some(*started) != on) {
            // One at a time.
            drop(last.take());
        }
        if let (Some(on), None) = (on, &last) {
            let started = Store::start(on)?.map_err(|why| report.push(Row::absent(id, &why)));
            last = Some((on, started.ok()));
        }
        match (part, &last) {
            (Part::Comparison(comparison), Some((_, Some(store)))) => report.extend(comparison.run(id, store)?),
            (Part::On(_, run), Some((_, Some(store)))) => report.extend(run(store, pace)?),
            (Part::Other(run), _) => report.extend(run(pace)?),
            // It is noted as absent.
            (Part::Comparison(_) | Part::On(..), _) => {}
        }
    }
    Ok(report)
}

fn known(id: &str) -> Result<String, String> {
    let ids: Vec<&str> = TABLE.iter().map(|workload| workload.id).collect();
    if ids.contains(&id) { Ok(id.to_owned()) } else { Err(format!("the workloads are {}", ids.join(", "))) }
}
