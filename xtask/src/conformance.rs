//! `cargo xtask conformance`: runs the conformance suite, and no other test; or its model alone, for as long as is asked.

use crate::command::passes;
use crate::services::Fleet;
use crate::workspace::{backends, cargo, crate_of};

/// The case of the suite that asks random scripts.
const MODEL: &str = "c01_any_script_of_steps_is_answered_as_the_contract_says";

/// What is asked for.
#[derive(Debug, Default, PartialEq)]
struct Choice<'a> {
    /// The names of backends; none: all.
    backends: Vec<&'a str>,
    /// How the model is asked, if it is asked alone.
    model: Vec<(&'static str, &'a str)>,
    /// The words for the suites' runner.
    for_runner: Vec<&'a str>,
}

impl<'a> Choice<'a> {
    fn read(arguments: &[&'a str]) -> Result<Self, String> {
        let split = arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len());
        let mut choice = Self { for_runner: arguments[split..].to_vec(), ..Self::default() };
        let mut ours = arguments[..split].iter();
        while let Some(argument) = ours.next() {
            let variable = match *argument {
                "--seconds" => "LEASEHOLD_MODEL_SECONDS",
                "--seed" => "LEASEHOLD_MODEL_SEED",
                name => {
                    choice.backends.push(name);
                    continue;
                }
            };
            let number = ours.next().filter(|number| number.parse::<u64>().is_ok());
            choice.model.push((variable, number.ok_or_else(|| format!("{argument} needs a number"))?));
            choice.for_runner = vec!["--", MODEL];
        }
        Ok(choice)
    }
}

/// Runs the suites of the named backends, or of all. Arguments after `--` go to the suites' runner.
pub(crate) fn run(arguments: &[&str]) -> Result<bool, String> {
    let choice = Choice::read(arguments)?;
    let all = backends()?;
    if let Some(unknown) = choice.backends.iter().find(|name| !all.iter().any(|known| known == *name)) {
        return Err(format!("no backend is named {unknown}; there are: {}", all.join(", ")));
    }
    let fleet = Fleet::start(|_| true)?;
    let mut failed = fleet.failed.clone();
    for backend in all.iter().filter(|name| choice.backends.is_empty() || choice.backends.contains(&name.as_str())) {
        let mut suite = cargo();
        suite.args(["test", "-p", &format!("leasehold-{}", crate_of(backend)), "--all-features", "--test", "it"]);
        suite.args(&choice.for_runner).env_remove("LEASEHOLD_CONFORMANCE_VARIANT").env("LEASEHOLD_TESTS", "suite");
        // Every variant.
        suite.env("LEASEHOLD_DEEP", "1").envs(fleet.environment()).envs(choice.model.iter().copied());
        if !passes(&mut suite)? {
            failed.push(backend.clone());
        }
    }
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_alone_is_asked_for_so_long_and_with_a_seed() {
        let choice = Choice::read(&["file", "--seconds", "60", "--seed", "7"]).expect("these are right");
        let model = vec![("LEASEHOLD_MODEL_SECONDS", "60"), ("LEASEHOLD_MODEL_SEED", "7")];
        assert_eq!(choice, Choice { backends: vec!["file"], model, for_runner: vec!["--", MODEL] });
        let choice = Choice::read(&["file", "--", "c16_", "c02_a"]).expect("these are right");
        assert_eq!((choice.backends, choice.for_runner), (vec!["file"], vec!["--", "c16_", "c02_a"]));
        assert_eq!(Choice::read(&["--seconds", "file"]), Err("--seconds needs a number".into()));
    }
}
