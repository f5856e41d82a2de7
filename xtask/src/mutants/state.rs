//! `cargo xtask mutants`: changes the engine's state machine in every small way that `cargo-mutants` knows, and looks
//! whether its search, its simulation and its unit tests notice.
//!
//! There are hundreds, and to build each would take longer than most of them survive: so all are built into one program,
//! each as an arm of the function that it changes, and an environment variable selects the one that is active.

mod alone;
mod arms;
mod equivalent;
mod generated;
mod life;
mod tool;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use self::alone::Alone;
use self::equivalent::EQUIVALENT;
use self::generated::Mutant;
use self::life::{End, Looks};

/// Percentage of the mutants that have to be noticed, of those that change the behaviour.
const ENOUGH: usize = 98;

/// Runs the mutants of the files of the state machine with these names, or of all files.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode, String> {
    let (flags, files): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| !["--install", "--quick"].contains(flag)) {
        return Err(format!("no such option: {unknown}"));
    }
    if flags.contains(&"--install") {
        tool::install()?;
    }
    let quick = flags.contains(&"--quick");
    let alone = Alone::create()?;
    let mutants = generated::list(&alone, &files)?;
    println!("{} mutants", mutants.len());
    let (program, viable) = arms::build(&alone, &mutants)?;
    println!("{} of them build", viable.len());
    let looks = Looks::new(&program, quick)?;
    let ends = lives(&mutants, &viable, |number| looks.live(number, is_listed(&mutants[number])))?;
    let table = Table::of(&mutants, &viable, &ends);
    table.print();
    let stale = stale(&mutants, &ends, files.is_empty());
    for entry in &stale {
        println!("listed as a change that changes nothing, and it is not so: {entry}");
    }
    Ok(if table.is_enough() && stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_listed(mutant: &Mutant) -> bool {
    EQUIVALENT.iter().any(|entry| entry.is(mutant))
}

/// Runs all mutants that could be built, several at a time, and returns how each ended.
fn lives(
    mutants: &[Mutant],
    viable: &[usize],
    live: impl Fn(usize) -> Result<End, String> + Sync,
) -> Result<BTreeMap<usize, End>, String> {
    let waiting = Mutex::new(viable.iter().copied());
    let ended = Mutex::new(Ok(BTreeMap::new()));
    let look = || {
        while let Some(number) = waiting.lock().ok().and_then(|mut waiting| waiting.next()) {
            let end = live(number);
            let Ok(mut ended) = ended.lock() else { return };
            if matches!(end, Ok(End::Survived)) && !is_listed(&mutants[number]) {
                println!("SURVIVED  {}", mutants[number]);
            }
            match (&mut *ended, end) {
                (Ok(ended), Ok(end)) => drop(ended.insert(number, end)),
                (_, Err(failure)) => *ended = Err(failure),
                (Err(_), _) => return,
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(look);
        }
    });
    ended.into_inner().map_err(|failure| failure.to_string())?
}

/// The mutants that are listed as equivalent although they were noticed, or do not exist.
fn stale(mutants: &[Mutant], ends: &BTreeMap<usize, End>, all: bool) -> Vec<String> {
    let is_so = |entry: &&equivalent::Equivalent| {
        let of_it: Vec<_> = (0..mutants.len()).filter(|number| entry.is(&mutants[*number])).collect();
        match of_it.as_slice() {
            [] => !all,
            numbers => numbers.iter().all(|number| ends.get(number) == Some(&End::Survived)),
        }
    };
    EQUIVALENT.iter().filter(|entry| !is_so(entry)).map(|entry| format!("{}: {}", entry.file, entry.mutant)).collect()
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
    fn of(mutants: &[Mutant], viable: &[usize], ends: &BTreeMap<usize, End>) -> Self {
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            for row in [mutant.file.clone(), "together".to_owned()] {
                let row = rows.entry(row).or_default();
                row.all += 1;
                match ends.get(&number) {
                    _ if !viable.contains(&number) => row.unviable += 1,
                    Some(End::Survived) if is_listed(mutant) => row.equivalent += 1,
                    Some(End::Survived) | None => row.survived += 1,
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

    fn is_enough(&self) -> bool {
        self.0.get("together").is_some_and(|row| row.score() >= ENOUGH * 100)
    }
}
