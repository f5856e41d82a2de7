//! Runs the tests on one mutant, and tells whether they notice it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::super::first_failure;

/// How a mutant ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Noticed by this test.
    Noticed(String),
    /// Noticed because the tests did not end in time.
    Hung,
    Survived,
}

/// One run of the tests on a mutant.
#[derive(Debug)]
struct Look {
    /// Factor by which fewer situations are searched than in the tests.
    share: u32,
    arguments: &'static [&'static str],
}

/// Leaves out the tests that need the whole search.
const SMALL: &[&str] = &["--skip", "::broken::", "--skip", "random::rules_that_are_left_out"];

/// The runs, in this order. Most mutants are noticed by the first one, which takes less than a second.
const LOOKS: [Look; 4] = [
    Look { share: 1, arguments: &["tests::"] },
    Look { share: 256, arguments: SMALL },
    Look { share: 16, arguments: SMALL },
    Look { share: 1, arguments: &[] },
];

/// The limit of the memory of a run, in KiB: more than the search needs, and less than would disturb the machine.
const MEMORY: &str = "6000000";

/// A mutant hangs when it takes this factor longer than the right code, and longer than this time.
const SLOWER: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// The runs of the tests on each mutant, and their time limits.
#[derive(Debug)]
pub(super) struct Looks<'p> {
    program: &'p Path,
    looks: Vec<(&'static Look, Duration)>,
}

impl<'p> Looks<'p> {
    /// Runs the tests on the right code, to measure how long that takes. `quick` leaves out the last run, which is the
    /// longest.
    pub(super) fn new(program: &'p Path, quick: bool) -> Result<Self, String> {
        let mut looks = Vec::new();
        for look in &LOOKS[..if quick { LOOKS.len() - 1 } else { LOOKS.len() }] {
            let began = Instant::now();
            let end = look.at(program, None, Duration::from_secs(3600))?;
            if end != End::Survived {
                return Err(format!("what is right fails: {end:?}"));
            }
            looks.push((look, (began.elapsed() * SLOWER).max(PATIENCE)));
        }
        Ok(Self { program, looks })
    }

    /// Runs the tests with the mutant of this number active.
    pub(super) fn live(&self, number: usize, quick: bool) -> Result<End, String> {
        let most = if quick { LOOKS.len() - 1 } else { LOOKS.len() };
        for (look, patience) in self.looks.iter().take(most) {
            let end = look.at(self.program, Some(number), *patience)?;
            if end != End::Survived {
                return Ok(end);
            }
        }
        Ok(End::Survived)
    }
}

impl Look {
    fn at(&self, program: &Path, number: Option<usize>, patience: Duration) -> Result<End, String> {
        let failure = |failure: std::io::Error| format!("{}: {failure}", program.display());
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v $0; exec \"$@\"", MEMORY]).arg(program);
        // The state machine's text is another here.
        command.args(self.arguments).args(["--skip", "imports::", "--test-threads=1"]);
        command.env("LEASEHOLD_SEARCH_SHARE", self.share.to_string());
        command.envs(number.map(|number| ("LEASEHOLD_MUTANT", number.to_string())));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failure)?;
        let (tell, told) = channel();
        let output = child.stdout.take();
        let reader = thread::spawn(move || tell.send(output.and_then(first_failure)));
        let first = told.recv_timeout(patience);
        if !matches!(first, Ok(None)) {
            // It may have ended by itself.
            let _ = child.kill();
        }
        let status = child.wait().map_err(failure)?;
        drop(reader.join());
        Ok(match first {
            Ok(Some(test)) => End::Noticed(test),
            Ok(None) if status.success() => End::Survived,
            Ok(None) => End::Noticed(status.to_string()),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => End::Hung,
        })
    }
}
