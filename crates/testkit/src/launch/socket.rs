//! A program that serves at a Unix socket.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{Lifetime, Process, Settings};

/// Starts `program`, with its files in `folder`, and waits until it listens at `socket`. The process has no port.
///
/// # Errors
/// If it does not start, or ends, or does not listen in time.
pub fn start(
    program: &Path,
    settings: &Settings,
    socket: &Path,
    folder: &Path,
    lifetime: Lifetime,
) -> Result<Process, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut process = Process::start(program, settings, 0, folder, lifetime)?;
    process.wait_until(|_| UnixStream::connect(socket).is_ok())?;
    Ok(process)
}
