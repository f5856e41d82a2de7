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

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

pub(super) use self::drivers::AS_ASKED;
use self::equivalent::Equivalent;
use self::generated::Mutant;
use self::kept::Kept;
use self::life::Run;
use self::subject::{Look, Subject};
use crate::command::at_once;
use crate::mutants::end::End;
use crate::services::Fleet;

/// Runs the mutants of the state machine, or of the crate that the first word names: those of the files with these names, or of
/// all files. With `--again`, only those that no earlier run noticed; with `--tests=NAME`, only by the programs of tests with
/// this name.
pub(crate) fn run(words: &[&str]) -> Result<bool, String> {
    let (flags, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("--"));
    let tests: Vec<&str> = flags.iter().filter_map(|flag| flag.strip_prefix("--tests=")).collect();
    let known = |flag: &str| ["--install", "--quick", "--again"].contains(&flag) || flag.starts_with("--tests=");
    if let Some(unknown) = flags.iter().find(|flag| !known(flag)) {
        return Err(format!("no such option: {unknown}"));
    }
    if flags.contains(&"--install") {
        generated::install()?;
    }
    let choice = Choice { quick: flags.contains(&"--quick"), again: flags.contains(&"--again"), tests };
    match words.split_first() {
        Some((name, files)) if drivers::NAMES.contains(name) => {
            let fleet = Fleet::start(|_| true)?;
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
    /// Leaves the subject only the tests that are asked for: programs that do not run are not built.
    fn narrow(&self, subject: &mut Subject) -> Result<(), String> {
        let names: Vec<_> = subject.looks.iter().map(|look| look.tests).collect();
        if let Some(unknown) = self.tests.iter().find(|name| !names.contains(name)) {
            return Err(format!("no tests named {unknown}; there are {}", names.join(", ")));
        }
        let is_named = |look: &Look| self.tests.is_empty() || self.tests.contains(&look.tests);
        subject.looks.retain(|look| is_named(look) && !(self.quick && look.thorough));
        Ok(())
    }
}

fn look_at(mut subject: Subject, files: &[&str], choice: &Choice<'_>) -> Result<bool, String> {
    choice.narrow(&mut subject)?;
    let subject = &subject;
    let mutants = generated::list(subject, files)?;
    println!("{} mutants", mutants.len());
    let (programs, viable) = arms::build(subject, &mutants)?;
    println!("{} of them build", viable.len());
    let listed = |number: usize| subject.equivalent.iter().find(|entry| is(entry, &mutants[number]));
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
        let alive = ends.iter().filter(|(_, end)| **end == End::Survived).map(|(number, _)| *number);
        let asked = alive.filter(|number| run.reaches(viable[number]) && !(look.thorough && listed(*number).is_some()));
        let asked: Vec<_> = asked.collect();
        println!("{run}; {} mutants", asked.len());
        let ended = lives(&mutants, &asked, crowd, &mut kept, |number| run.on(number, viable[&number]))?;
        let hung = ended.iter().filter(|(_, end)| crowd > 1 && **end == End::Hung).map(|(number, _)| *number);
        let hung: Vec<_> = hung.collect();
        ends.extend(ended);
        // Beside others, what is only slow seems to hang.
        ends.extend(lives(&mutants, &hung, 1, &mut kept, |number| run.alone(number, viable[&number]))?);
    }
    for number in ends.iter().filter(|(_, end)| **end == End::Survived).map(|(number, _)| *number) {
        match listed(number) {
            Some(entry) => println!("changes nothing {}: {}", mutants[number], entry.why),
            None => println!("SURVIVED {}", mutants[number]),
        }
    }
    let score = print_table(&mutants, &ends, |number| listed(number).is_some());
    let stale = stale(subject.equivalent, &mutants, &ends, files.is_empty());
    for entry in &stale {
        println!("listed as a change that changes nothing, and it is not so: {entry}");
    }
    Ok(score >= subject.enough * 100 && stale.is_empty() && complete)
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
        if of_it.is_empty() {
            return !all;
        }
        // Of two functions for two builds, one is not there, or does not build.
        let ended: Vec<_> = of_it.iter().filter_map(|number| ends.get(number)).collect();
        !ended.is_empty() && ended.iter().all(|end| **end == End::Survived)
    };
    listed.iter().filter(|entry| !is_so(entry)).map(|entry| format!("{}: {}", entry.file, entry.mutant)).collect()
}

/// Prints how many mutants of each file ended how, and returns the share of all that was noticed, in hundredths of a percent.
fn print_table(mutants: &[Mutant], ends: &BTreeMap<usize, End>, is_listed: impl Fn(usize) -> bool) -> usize {
    let column = |number| match ends.get(&number) {
        None => 0,
        Some(End::Noticed(_)) => 1,
        Some(End::Hung) => 2,
        Some(End::Survived) if is_listed(number) => 3,
        Some(End::Survived) => 4,
    };
    let mut rows: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate() {
        for row in [mutant.file.as_str(), "together"] {
            rows.entry(row).or_default()[column(number)] += 1;
        }
    }
    println!("\n| file | mutants | do not build | noticed | hang | change nothing | survived | score |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut together = 0;
    for (file, row) in rows {
        let [unviable, noticed, hung, equivalent, survived] = row;
        let all: usize = row.iter().sum();
        let killed = noticed + hung;
        let score = (killed * 10_000).checked_div(killed + survived).unwrap_or(10_000);
        let (whole, part) = (score / 100, score % 100);
        println!(
            "| {file} | {all} | {unviable} | {noticed} | {hung} | {equivalent} | {survived} | {whole}.{part:02} % |"
        );
        if file == "together" {
            together = score;
        }
    }
    together
}
