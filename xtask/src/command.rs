//! Runs commands, several at a time, and says which one failed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Whether a command succeeds. What it prints is printed.
pub(crate) fn passes(command: &mut Command) -> Result<bool, String> {
    let status = command.status().map_err(|failure| format!("{}: {failure}", in_words(command)))?;
    Ok(status.success())
}

/// The same, where a command that fails is an error.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    if passes(command)? { Ok(()) } else { Err(format!("{} failed", in_words(command))) }
}

/// What a command prints, if it succeeds. Of what is wrong it tells the user itself.
pub(crate) fn printed(command: &mut Command) -> Result<String, String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|failure| format!("{}: {failure}", in_words(command)))?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", in_words(command), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as text, for example `cargo fmt --check`, without the path of the program.
pub(crate) fn in_words(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    [program.to_string_lossy()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Does this with each of them, so many at a time, and returns the results in their order, or the first failure.
pub(crate) fn at_once<'a, T: Sync, R: Send + Sync>(
    all: &'a [T],
    crowd: usize,
    work: impl Fn(&'a T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    let results: Vec<_> = all.iter().map(|_| OnceLock::new()).collect();
    thread::scope(|scope| {
        for _ in 0..crowd {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(at) else { return };
                    let _ = results[at].set(work(one));
                }
            });
        }
    });
    results.into_iter().filter_map(OnceLock::into_inner).collect()
}
