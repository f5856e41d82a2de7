//! `cargo xtask conformance`: runs the conformance suite, and no other test.

use std::io;
use std::process::{ExitCode, Stdio};

use crate::services::Fleet;
use crate::tally::Tally;
use crate::workspace::{Backend, backends, cargo};

/// Runs the suites of the named backends, or of all. Arguments after `--` go to the suites' runner.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let split = arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len());
    let (names, for_runner) = arguments.split_at(split);
    let chosen = choose(names, backends()?)?;

    let fleet = Fleet::start(|_| true)?;
    fleet.describe();
    let (mut lines, mut begin_with) = (Vec::new(), Vec::new());
    let mut code = if fleet.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    for backend in &chosen {
        let (passed, tally) = run_one(backend, for_runner, &fleet)?;
        if !passed {
            code = ExitCode::FAILURE;
        }
        if tally.suites.is_empty() {
            lines.push(format!("{}  ended without a result", backend.name));
            code = ExitCode::FAILURE;
        }
        lines.extend(tally.suites);
        begin_with.extend(tally.begin_with.iter().map(|line| format!("{}: {line}", backend.name)));
    }
    let failed = fleet.failed.clone();
    drop(fleet);
    println!("\n{}", failed.into_iter().chain(lines).chain(begin_with).collect::<Vec<_>>().join("\n"));
    Ok(code)
}

fn choose(names: &[&str], all: Vec<Backend>) -> Result<Vec<Backend>, String> {
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|backend| backend.name != **name)) {
        let known: Vec<&str> = all.iter().map(|backend| backend.name.as_str()).collect();
        return Err(format!("no backend is named {unknown}; there are: {}", known.join(", ")));
    }
    Ok(all.into_iter().filter(|backend| names.is_empty() || names.contains(&backend.name.as_str())).collect())
}

fn run_one(backend: &Backend, for_runner: &[&str], fleet: &Fleet) -> Result<(bool, Tally), String> {
    let mut child = cargo()
        .args(["test", "-p", &backend.package, "--all-features", "--test", "it"])
        .args(for_runner)
        .env_remove("LEASEHOLD_CONFORMANCE_VARIANT")
        .env("LEASEHOLD_TESTS", "suite")
        // Every variant.
        .env("LEASEHOLD_DEEP", "1")
        .envs(fleet.environment())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cargo test: {e}"))?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        tally.stream(output, io::stdout()).map_err(|e| format!("cargo test: {e}"))?;
    }
    let status = child.wait().map_err(|e| format!("cargo test: {e}"))?;
    Ok((status.success(), tally))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<Backend> {
        ["memory", "file"].map(|name| Backend { name: name.into(), package: format!("leasehold-{name}") }).into()
    }

    #[test]
    fn no_name_means_every_backend() {
        assert_eq!(choose(&[], known()), Ok(known()));
        assert_eq!(choose(&["file"], known()).map(|chosen| chosen.len()), Ok(1));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let refusal = choose(&["oracle"], known()).expect_err("there is no such backend");
        assert_eq!(refusal, "no backend is named oracle; there are: memory, file");
    }
}
