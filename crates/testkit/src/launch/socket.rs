//! A program that serves at a Unix socket.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::process::{Launch, Process};
use super::settings::Settings;

/// Starts `program`, with its files in `folder`, and waits until it listens at `sock` there. The process has no port.
pub fn start(program: &Path, settings: &Settings, folder: &Path) -> Result<Process, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let ready = |server: &Process| UnixStream::connect(server.folder().join("sock")).is_ok();
    let (program, settings, folder) = (program.to_owned(), settings.clone(), folder.to_owned());
    Launch { program, settings, port: 0, folder, ready }.start(&[])
}
