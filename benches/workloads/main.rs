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
mod agent;
mod batches;
mod etcd;
mod file;
mod growth;
mod hot_key;
mod mysql;
mod postgres;
mod redis_rw;
mod redis_single;
mod redlock;
mod renewals;
mod server_cost;
mod throughput;
// their servers, and locks in other languages,
mod peers;
mod servers;
// how they are run,
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
use crate::load::Result;
use crate::pace::Pace;
use crate::report::Report;

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

struct Workload {
    id: &'static str,
    run: fn(Pace) -> Result<Report>,
}

const ALL: &[Workload] = &[
    Workload { id: "U1", run: redis_single::u1 },
    Workload { id: "U64", run: redis_single::u64 },
    Workload { id: "U1d", run: redis_single::u1d },
    Workload { id: "U64d", run: redis_single::u64d },
    Workload { id: "T", run: throughput::by_tasks },
    Workload { id: "S", run: batches::by_size },
    Workload { id: "S64", run: server_cost::each_backend },
    Workload { id: "H1", run: hot_key::one_process },
    Workload { id: "H8", run: hot_key::eight_processes },
    Workload { id: "H8h", run: hot_key::with_work },
    Workload { id: "Q1", run: redlock::q1 },
    Workload { id: "Q64", run: redlock::q64 },
    Workload { id: "Q-down", run: redlock::two_down },
    Workload { id: "R100k", run: renewals::hundred_thousand },
    Workload { id: "F1", run: file::f1 },
    Workload { id: "C", run: growth::growth },
    Workload { id: "M1", run: mysql::m1 },
    Workload { id: "M64", run: mysql::m64 },
    Workload { id: "MH1", run: mysql::one_process },
    Workload { id: "MH8", run: mysql::eight_processes },
    Workload { id: "MR", run: mysql::readers_and_writers },
    Workload { id: "MN", run: mysql::ten_thousand },
    Workload { id: "P1", run: postgres::p1 },
    Workload { id: "P64", run: postgres::p64 },
    Workload { id: "PH1", run: postgres::one_process },
    Workload { id: "PH8", run: postgres::eight_processes },
    Workload { id: "W1", run: redis_rw::w1 },
    Workload { id: "W64", run: redis_rw::w64 },
    Workload { id: "WR64", run: redis_rw::readers },
    Workload { id: "WH8", run: redis_rw::eight_processes },
    Workload { id: "E1", run: etcd::e1 },
    Workload { id: "E64", run: etcd::e64 },
    Workload { id: "EH1", run: etcd::one_process },
    Workload { id: "EH8", run: etcd::eight_processes },
    Workload { id: "A1", run: agent::a1 },
    Workload { id: "A64", run: agent::a64 },
    Workload { id: "AF", run: agent::files },
    Workload { id: "A500", run: agent::many_processes },
    Workload { id: "M-idle", run: mysql::one_beside_a_million },
];

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
    for workload in ALL.iter().filter(|workload| wanted.is_empty() || wanted.iter().any(|id| id == workload.id)) {
        eprintln!("{} …", workload.id);
        match (workload.run)(pace) {
            Ok(found) => report.extend(found),
            Err(error) => broken.push(format!("{}: {error}", workload.id)),
        }
    }
    (report, broken)
}

fn known(id: &str) -> Result<String, String> {
    let ids: Vec<&str> = ALL.iter().map(|workload| workload.id).collect();
    if ids.contains(&id) { Ok(id.to_owned()) } else { Err(format!("the workloads are {}", ids.join(", "))) }
}
