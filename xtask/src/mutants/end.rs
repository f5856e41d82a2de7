//! Runs tests until the first one fails.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How a mutant ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Noticed by this test.
    Noticed(String),
    /// Noticed because the tests did not end in time.
    Hung,
    Survived,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noticed(by) => write!(f, "noticed by {by}"),
            Self::Hung => f.write_str("hangs"),
            Self::Survived => f.write_str("SURVIVED"),
        }
    }
}

/// Runs these tests until the first one fails, or until they took too long.
pub(crate) fn end_of(tests: &mut Command, patience: Duration) -> Result<End, String> {
    let failure = |failure: std::io::Error| format!("the tests: {failure}");
    let mut child = tests.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(failure)?;
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
        Err(_) => End::Hung,
    })
}

/// Reads a line such as `test memory::c01_a_second_holder_is_excluded ... FAILED`.
fn first_failure(output: impl Read) -> Option<String> {
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let mut failures = lines.filter(|line| line.starts_with("test ") && line.ends_with("FAILED"));
    let line = failures.next()?;
    line.split_whitespace().nth(1).map(str::to_owned)
}
