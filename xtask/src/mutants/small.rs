//! `cargo xtask mutants`: changes the engine's state machine, or a crate around a driver, in every small way that
//! `cargo-mutants` knows, and looks whether its tests notice.
//!
//! There are hundreds, and to build each would take longer than most of them survive: so all are built into one program,
//! each as an arm of the function that it changes, and an environment variable selects the one that is active.

mod arms;
mod drivers;
mod equivalent;
mod generated;
mod kept;
mod life;
mod rules;
mod state;
mod subject;
mod tool;
mod without_rules;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

pub(super) use self::drivers::AS_ASKED;
use self::equivalent::Equivalent;
use self::generated::Mutant;
use self::kept::Kept;
use self::life::Run;
use self::subject::{Look, Subject};
use crate::mutants::at_once;
use crate::mutants::end::End;
use crate::services::Fleet;

/// Runs the mutants of the state machine, or of the crate that the first word names: those of the files with these names, or of
/// all files. With `--again`, only those that no earlier run noticed; with `--tests=NAME`, only by the programs of tests with
/// this name.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let (flags, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("--"));
    let tests: Vec<&str> = flags.iter().filter_map(|flag| flag.strip_prefix("--tests=")).collect();
    let known = |flag: &str| ["--install", "--quick", "--again"].contains(&flag) || flag.starts_with("--tests=");
    if let Some(unknown) = flags.iter().find(|flag| !known(flag)) {
        return Err(format!("no such option: {unknown}"));
    }
    if flags.contains(&"--install") {
        tool::install()?;
    }
    let choice = Choice { quick: flags.contains(&"--quick"), again: flags.contains(&"--again"), tests };
    match words.split_first() {
        Some((name, files)) if drivers::NAMES.contains(name) => {
            let fleet = Fleet::start(|_| true)?;
            fleet.describe();
            look_at(drivers::subject(name, &fleet.environment())?, files, &choice)
        }
        _ => look_at(state::subject()?, &words, &choice),
    }
}

/// What is tried.
struct Choice<'w> {
    quick: bool,
    again: bool,
    /// Names of programs; none: all.
    tests: Vec<&'w str>,
}

impl Choice<'_> {
    fn is_for(&self, look: &Look) -> bool {
        let named = self.tests.is_empty() || self.tests.contains(&look.program.tests);
        named && !(self.quick && look.thorough)
    }
}

fn look_at(mut subject: Subject, files: &[&str], choice: &Choice<'_>) -> Result<ExitCode, String> {
    let names: Vec<_> = subject.looks.iter().map(|look| look.program.tests).collect();
    if let Some(unknown) = choice.tests.iter().find(|name| !names.contains(name)) {
        return Err(format!("no tests named {unknown}; there are {}", names.join(", ")));
    }
    // Before the build: programs that do not run are not built.
    subject.looks.retain(|look| choice.is_for(look));
    let subject = &subject;
    let mut mutants = generated::list(subject, files)?;
    mutants.extend(without_rules::of(subject, &mutants)?);
    let mutants = mutants;
    println!("{} mutants", mutants.len());
    let (programs, viable) = arms::build(subject, &mutants)?;
    println!("{} of them build", viable.len());
    let is_listed = |number: usize| subject.equivalent.iter().any(|entry| is(entry, &mutants[number]));
    let mut kept = Kept::of(subject, &mutants);
    let before = |number| kept.end(number).filter(|_| choice.again).unwrap_or(End::Survived);
    let mut ends: BTreeMap<usize, End> = viable.keys().map(|number| (*number, before(*number))).collect();
    let mut complete = choice.tests.is_empty();
    let crowd = subject.at_once * thread::available_parallelism().map_or(1, usize::from);
    for look in &subject.looks {
        let run = match Run::on_what_is_right(subject, look, &programs, crowd) {
            Ok(run) => run,
            Err(why) => {
                println!("left out: {why}");
                complete = false;
                continue;
            }
        };
        let alive =
            ends.iter().filter(|(number, end)| **end == End::Survived && !(look.thorough && is_listed(**number)));
        let reached: Vec<_> = alive.map(|(number, _)| *number).filter(|number| run.reaches(viable[number])).collect();
        println!("{run}; {} mutants", reached.len());
        let ended = lives(&mutants, &reached, crowd, &mut kept, |number| run.on(number, viable[&number]))?;
        let hung: Vec<_> =
            ended.iter().filter(|(_, end)| crowd > 1 && **end == End::Hung).map(|(number, _)| *number).collect();
        ends.extend(ended);
        // Beside others, what is only slow seems to hang.
        ends.extend(lives(&mutants, &hung, 1, &mut kept, |number| run.alone(number, viable[&number]))?);
    }
    for number in ends.iter().filter(|(_, end)| **end == End::Survived).map(|(number, _)| *number) {
        println!("{} {}", if is_listed(number) { "changes nothing" } else { "SURVIVED" }, mutants[number]);
    }
    let table = Table::of(&mutants, &ends, is_listed);
    table.print();
    let stale = stale(subject.equivalent, &mutants, &ends, files.is_empty());
    for entry in &stale {
        println!("listed as a change that changes nothing, and it is not so: {entry}");
    }
    let enough = table.is_enough(subject.enough) && stale.is_empty() && complete;
    Ok(if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is(entry: &Equivalent, mutant: &Mutant) -> bool {
    mutant.file == entry.file && mutant.what == entry.mutant && mutant.line.contains(entry.line)
}

/// Runs these mutants, so many at a time, and returns how each ended.
fn lives(
    mutants: &[Mutant],
    numbers: &[usize],
    crowd: usize,
    kept: &mut Kept,
    live: impl Fn(usize) -> Result<End, String> + Sync,
) -> Result<BTreeMap<usize, End>, String> {
    let kept = Mutex::new(kept);
    let ends = at_once(numbers, crowd, |number| {
        let end = live(*number)?;
        let is_sure = crowd == 1 || end != End::Hung;
        if is_sure && end != End::Survived {
            kept.lock().map_err(|failure| failure.to_string())?.keep(*number, &end)?;
            println!("{}\n            {end}", mutants[*number]);
        }
        Ok(end)
    })?;
    Ok(numbers.iter().copied().zip(ends).collect())
}

/// The mutants that are listed as equivalent although they were noticed, or do not exist.
fn stale(listed: &[Equivalent], mutants: &[Mutant], ends: &BTreeMap<usize, End>, all: bool) -> Vec<String> {
    let is_so = |entry: &&Equivalent| {
        let of_it: Vec<_> = (0..mutants.len()).filter(|number| is(entry, &mutants[*number])).collect();
        match of_it.as_slice() {
            [] => !all,
            // Of two functions for two builds, one is not there, or does not build.
            numbers => {
                let ended: Vec<_> = numbers.iter().filter_map(|number| ends.get(number)).collect();
                !ended.is_empty() && ended.iter().all(|end| **end == End::Survived)
            }
        }
    };
    listed.iter().filter(|entry| !is_so(entry)).map(|entry| format!("{}: {}", entry.file, entry.mutant)).collect()
}

/// The counts of how the mutants of a file ended.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    all: usize,
    unviable: usize,
    hung: usize,
    noticed: usize,
    equivalent: usize,
    survived: usize,
}

impl Row {
    fn killed(&self) -> usize {
        self.hung + self.noticed
    }

    /// The share of the mutants that were noticed, in hundredths of a percent.
    fn score(&self) -> usize {
        let counted = self.killed() + self.survived;
        (self.killed() * 10_000).checked_div(counted).unwrap_or(10_000)
    }
}

struct Table(BTreeMap<String, Row>);

impl Table {
    fn of(mutants: &[Mutant], ends: &BTreeMap<usize, End>, is_listed: impl Fn(usize) -> bool) -> Self {
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            for row in [mutant.file.clone(), "together".to_owned()] {
                let row = rows.entry(row).or_default();
                row.all += 1;
                match ends.get(&number) {
                    None => row.unviable += 1,
                    Some(End::Survived) if is_listed(number) => row.equivalent += 1,
                    Some(End::Survived) => row.survived += 1,
                    Some(End::Hung) => row.hung += 1,
                    Some(End::Noticed(_)) => row.noticed += 1,
                }
            }
        }
        Self(rows)
    }

    fn print(&self) {
        println!("\n| file | mutants | do not build | noticed | hang | change nothing | survived | score |");
        println!("|---|---|---|---|---|---|---|---|");
        for (file, row) in &self.0 {
            let (whole, part) = (row.score() / 100, row.score() % 100);
            let Row { all, unviable, hung, noticed, equivalent, survived } = row;
            println!(
                "| {file} | {all} | {unviable} | {noticed} | {hung} | {equivalent} | {survived} | {whole}.{part:02} % |"
            );
        }
    }

    fn is_enough(&self, percent: usize) -> bool {
        self.0.get("together").is_some_and(|row| row.score() >= percent * 100)
    }
}
