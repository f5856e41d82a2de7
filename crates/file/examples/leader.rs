//! Three processes, of which one leads. Whoever leads is killed, one after the other: each time another one leads, in a greater
//! term, until none is left.
//!
//! ```console
//! $ cargo run -p leasehold-file --example leader
//! ```
//!
//! By hand, `leader candidate DIRECTORY NAME` in several terminals is the same. For candidates on several machines, only the line
//! that opens the locks is another one: `RedisSingle::connect("redis://…").await?`.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use leasehold_file::{Election, FencingToken, FileLocks, GuardHandle};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, directory, name] if role == CANDIDATE => candidate(directory, name),
        _ => story(),
    }
}

/// The first argument of a process that is a candidate.
pub(crate) const CANDIDATE: &str = "candidate";

const NAME: &str = "scheduler";

/// Works as long as it leads, and waits for that otherwise. It ends only by a signal.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn candidate(directory: &str, name: &str) -> Result<()> {
    let election = Election::new(FileLocks::open(directory)?, NAME, name)?;
    let work = |term: GuardHandle| async move {
        let number = term.fencing_token().map_or(0, FencingToken::get);
        println!("{name} leads in term {number}");
        while term.is_held() {
            // What a leader does goes here; what it writes goes with the term. It is dropped when the leadership is lost.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    Ok(election.run_while_leader(work).await?)
}

/// Starts the candidates, and kills whoever leads.
pub(crate) fn story() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("leasehold-leader-{}", std::process::id()));
    let told = three_candidates(&directory.display().to_string());
    std::fs::remove_dir_all(&directory)?;
    told
}

#[tokio::main(flavor = "current_thread")]
async fn three_candidates(directory: &str) -> Result<()> {
    let observer = Election::new(FileLocks::open(directory)?, NAME, "an observer")?;
    let (tell, told) = mpsc::channel();
    let mut candidates = Vec::new();
    for name in ["ada", "ben", "cay"] {
        candidates.push(Candidate::start(directory, name, &tell)?);
    }
    let mut term = 0;
    while !candidates.is_empty() {
        let (leader, next_term) = next_leader(&told)?;
        println!("{leader} leads in term {next_term}");
        let seen = observer.leader().await?.ok_or("nobody is seen to lead")?;
        if next_term <= term || seen.candidate != leader || seen.term != Some(next_term.into()) {
            return Err(format!("{leader} leads in term {next_term} after {term}, and {seen:?} is seen").into());
        }
        let at = candidates.iter().position(|candidate| candidate.name == leader);
        // It is killed with SIGKILL: it can neither resign nor release anything.
        drop(candidates.swap_remove(at.ok_or("a candidate leads that was killed")?));
        println!("{leader} was killed");
        term = next_term;
    }
    match observer.leader().await? {
        None => Ok(()),
        Some(leader) => Err(format!("all were killed, and {leader:?} leads").into()),
    }
}

/// The next leader and its term.
fn next_leader(told: &Receiver<String>) -> Result<(String, u64)> {
    let line = told.recv_timeout(Duration::from_secs(60)).map_err(|_| "nobody leads")?;
    let (name, term) = line.split_once(" leads in term ").ok_or("a candidate said something else")?;
    Ok((name.to_owned(), term.parse()?))
}

/// This program again, as a candidate. It is killed when this is dropped.
struct Candidate {
    name: &'static str,
    process: Child,
}

impl Candidate {
    fn start(directory: &str, name: &'static str, tell: &Sender<String>) -> Result<Self> {
        let mut program = Command::new(std::env::current_exe()?);
        let mut process = program.args([CANDIDATE, directory, name]).stdout(Stdio::piped()).spawn()?;
        let (output, tell) = (process.stdout.take().ok_or("it was piped")?, tell.clone());
        // It ends with the process.
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(std::result::Result::ok).try_for_each(|line| tell.send(line))
        });
        Ok(Self { name, process })
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
