use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian has the programs of `PostgreSQL`, by version.
const DEBIANS_POSTGRES: &str = "/usr/lib/postgresql";

/// Where a program is: in the search path, or in a folder of system programs, which an ordinary user's path may lack.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let versions =
        fs::read_dir(DEBIANS_POSTGRES).into_iter().flatten().flatten().map(|version| version.path().join("bin"));
    env::split_paths(&path)
        .chain(system)
        .chain(versions)
        .map(|folder| folder.join(program))
        .find(|file| is_program(file))
}

/// Whether this process runs as root, where there is a `/proc` to tell.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The path of a program that is needed.
pub(super) fn need(program: &str) -> Result<PathBuf, String> {
    find(program).ok_or_else(|| format!("{program} is not installed"))
}

/// Runs a program to its end. Of one that fails, it tells what that printed.
pub(super) fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command.output().map_err(|e| format!("{name}: {e}"))?;
    let printed = [ended.stdout, ended.stderr].concat();
    if ended.status.success() { Ok(()) } else { Err(format!("{name}: {}", String::from_utf8_lossy(&printed))) }
}
