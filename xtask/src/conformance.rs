//! `cargo xtask conformance`: runs the conformance suite, and no other test; or its model alone, for as long as is asked.

use std::io;
use std::process::{ExitCode, Stdio};

use crate::services::Fleet;
use crate::tally::Tally;
use crate::workspace::{Backend, backends, cargo};

/// Runs the suites of the named backends, or of all. Arguments after `--` go to the suites' runner.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let split = arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len());
    let (ours, for_runner) = arguments.split_at(split);
    let (names, model) = Model::read(ours)?;
    let chosen = choose(&names, backends()?)?;
    let for_runner = model.as_ref().map_or(for_runner, |_| &["--", MODEL]);

    let fleet = Fleet::start(|_| true)?;
    fleet.describe();
    let (mut lines, mut begin_with) = (Vec::new(), Vec::new());
    let mut code = if fleet.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    for backend in &chosen {
        let (passed, tally) = run_one(backend, for_runner, &fleet, model.as_ref())?;
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

/// The case of the suite that asks random scripts.
const MODEL: &str = "c01_any_script_of_steps_is_answered_as_the_contract_says";

/// How the model is asked for alone.
#[derive(Debug, Default, PartialEq)]
struct Model {
    seconds: Option<String>,
    seed: Option<String>,
}

impl Model {
    /// The names of backends in these arguments, and how the model is asked, if it is.
    fn read<'a>(arguments: &[&'a str]) -> Result<(Vec<&'a str>, Option<Self>), String> {
        let (mut names, mut model) = (Vec::new(), None::<Self>);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let model = match *argument {
                "--seconds" => &mut model.get_or_insert_default().seconds,
                "--seed" => &mut model.get_or_insert_default().seed,
                name => {
                    names.push(name);
                    continue;
                }
            };
            let number = arguments.next().filter(|number| number.parse::<u64>().is_ok());
            *model = Some(number.ok_or_else(|| format!("{argument} needs a number"))?.to_string());
        }
        Ok((names, model))
    }

    fn environment(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let seconds = self.seconds.as_deref().map(|seconds| ("LEASEHOLD_MODEL_SECONDS", seconds));
        seconds.into_iter().chain(self.seed.as_deref().map(|seed| ("LEASEHOLD_MODEL_SEED", seed)))
    }
}

fn run_one(
    backend: &Backend,
    for_runner: &[&str],
    fleet: &Fleet,
    model: Option<&Model>,
) -> Result<(bool, Tally), String> {
    let mut child = cargo()
        .args(["test", "-p", &backend.package, "--all-features", "--test", "it"])
        .args(for_runner)
        .env_remove("LEASEHOLD_CONFORMANCE_VARIANT")
        .env("LEASEHOLD_TESTS", "suite")
        // Every variant.
        .env("LEASEHOLD_DEEP", "1")
        .envs(fleet.environment())
        .envs(model.into_iter().flat_map(Model::environment))
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
    fn the_model_alone_is_asked_for_so_long_and_with_a_seed() {
        let (names, model) = Model::read(&["file", "--seconds", "60", "--seed", "7"]).expect("these are right");
        let model = model.expect("it is asked for");
        assert_eq!(names, ["file"]);
        let environment: Vec<_> = model.environment().collect();
        assert_eq!(environment, [("LEASEHOLD_MODEL_SECONDS", "60"), ("LEASEHOLD_MODEL_SEED", "7")]);
        assert_eq!(Model::read(&["file"]), Ok((vec!["file"], None)));
        assert_eq!(Model::read(&["--seconds", "file"]), Err("--seconds needs a number".into()));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let refusal = choose(&["oracle"], known()).expect_err("there is no such backend");
        assert_eq!(refusal, "no backend is named oracle; there are: memory, file");
    }
}
