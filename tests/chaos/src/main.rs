//! `leasehold-chaos`: real clients on real servers under faults, and a verdict on what the clients saw.
//!
//! `cargo xtask chaos` runs it. With `--client` it is one of the clients, with `--agent` an agent.

#![allow(clippy::disallowed_methods, reason = "the faults come at moments of the machine's own clock")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the command line")]

mod agent;
mod arguments;
mod client;
mod clients;
mod fault;
mod guarantees;
mod locks;
mod nemesis;
mod report;
mod resource;
mod run;
mod setups;
mod soak;
mod stores;
mod wire;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Plan;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.as_slice() {
        [flag, orders] if flag == "--client" => serde_json::from_str(orders)
            .map_err(|error| error.to_string())
            .and_then(|orders| client::run(&orders))
            .map(|()| true),
        [flag, socket, url] if flag == "--agent" => agent::run(socket, url).map(|()| true),
        [flag, rest @ ..] if flag == "--guarantees" => {
            let text = rest.first().map_or_else(|| Ok(guarantees::of_all()), |backend| guarantees::of_backend(backend));
            text.map(|text| println!("{}", text.trim_end())).map(|()| true)
        }
        _ => {
            let plan = Plan::parse();
            plan.soak.map_or_else(|| run::all(&plan), |limit| soak::all(&plan, limit))
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("chaos: {why}");
            ExitCode::from(2)
        }
    }
}
