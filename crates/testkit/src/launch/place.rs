use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::{need, run};

/// The file system in memory of Linux.
const MEMORY: &str = "/dev/shm";

/// The room that it has to have: containers often have 64 MB.
const ROOM: u64 = 4 << 30;

/// The folder for the data of servers: in memory where there is room, because servers mostly wait for their disk.
pub fn place() -> PathBuf {
    let has_room = rustix::fs::statvfs(MEMORY).is_ok_and(|room| room.f_bavail.saturating_mul(room.f_frsize) >= ROOM);
    if has_room { Path::new(MEMORY).to_path_buf() } else { env::temp_dir() }
}

/// The folder below `parent` of the server on this port, which is made.
pub(super) fn folder(parent: &Path, kind: &str, port: u16) -> Result<PathBuf, String> {
    let folder = parent.join(format!("{kind}-{port}"));
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// An empty data directory of this version of a server, which `make` makes. Made once: that takes seconds, a copy a fraction of one.
pub(super) fn template(
    kind: &str,
    program: &str,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("the template of {kind}: {e}");
    let version = Command::new(need(program)?).arg("--version").output().map_err(failed)?.stdout;
    let version: String = version.into_iter().filter(u8::is_ascii_digit).map(char::from).collect();
    let finished = place().join(format!("leasehold-{kind}-template-{version}"));
    if finished.is_dir() {
        return Ok(finished);
    }
    let unfinished = tempfile::tempdir_in(place()).map_err(failed)?;
    let data = unfinished.path().join("data");
    make(&data)?;
    // In one step, so that others find a whole template or none. The second of two uses the first one's.
    match fs::rename(&data, &finished) {
        Err(error) if !finished.is_dir() => Err(failed(error)),
        _ => Ok(finished),
    }
}

/// Copies a data directory, with its owners.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    run(Command::new("cp").arg("-a").args([from, to]))
}
