//! Starts `MariaDB`: a server with an empty database `leasehold` and a user root without a password.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::place::place;
use super::process::{Lifetime, Process, on_a_free_port};
use super::programs::{is_root, need};
use super::settings::Settings;

/// The program of a `MariaDB` server.
pub const PROGRAM: &str = "mariadbd";

/// The program that makes a data directory.
pub const INSTALL: &str = "mariadb-install-db";

/// Every server begins with a copy of its log.
const LOG_SIZE: &str = "--innodb-log-file-size=8M";

/// Starts a server on a free port, in a folder of its own below `parent`, and waits until it accepts logins.
///
/// # Errors
/// When the server is not installed or does not start; with the end of its log.
pub fn start(parent: &Path, settings: &Settings, lifetime: Lifetime) -> Result<Process, String> {
    on_a_free_port(|port| {
        let folder = folder(parent, port);
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let data = folder.join("data");
        copy(&template()?, &data)?;
        // A folder is a database: of the server's own character set, as if it had been created by a statement.
        fs::create_dir(data.join("leasehold")).map_err(|e| format!("{}: {e}", data.display()))?;
        start_on(port, parent, settings, lifetime)
    })
}

/// Starts a server again on the data that it left below `parent` when it listened on this port.
///
/// # Errors
/// As for [`start`].
pub fn start_on(port: u16, parent: &Path, settings: &Settings, lifetime: Lifetime) -> Result<Process, String> {
    let program = need(PROGRAM)?;
    let folder = folder(parent, port);
    let data = folder.join("data");
    let mut arguments = vec!["--no-defaults".to_owned()];
    arguments.extend(user().map(str::to_owned));
    arguments.extend([
        format!("--datadir={}", data.display()),
        // In a folder that several servers share, one may remove what another is about to open.
        format!("--tmpdir={}", data.display()),
        // Relative to the data directory: a full path may be longer than a socket's name can be.
        "--socket=socket".into(),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".into(),
        "--pid-file=pid".into(),
        "--skip-name-resolve".into(),
        "--innodb-buffer-pool-size=64M".into(),
        LOG_SIZE.into(),
        "--performance-schema=OFF".into(),
    ]);
    arguments.extend(settings.arguments.iter().cloned());
    let settings = Settings { arguments, variables: settings.variables.clone() };
    let mut server = Process::start(&program, &settings, port, &folder, lifetime)?;
    server.wait_until(greets)?;
    Ok(server)
}

fn folder(parent: &Path, port: u16) -> PathBuf {
    parent.join(format!("mariadb-{port}"))
}

/// The address of a server's database as user root, whom it asks for no password.
pub fn url(port: u16) -> String {
    format!("mysql://root@127.0.0.1:{port}/leasehold")
}

/// An empty data directory of this version of the server. Made once: that takes seconds, a copy a fraction of one.
fn template() -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("MariaDB's template: {e}");
    let version = Command::new(need(PROGRAM)?).args(["--no-defaults", "--version"]).output().map_err(failed)?.stdout;
    let version: String = version.into_iter().filter(u8::is_ascii_digit).map(char::from).collect();
    let finished = place().join(format!("leasehold-mariadb-template-{version}"));
    if finished.is_dir() {
        return Ok(finished);
    }
    let unfinished = tempfile::tempdir_in(place()).map_err(failed)?;
    let data = unfinished.path().join("data");
    let installed = Command::new(need(INSTALL)?)
        .arg("--no-defaults")
        .args(user())
        .arg(format!("--datadir={}", data.display()))
        .args([LOG_SIZE, "--auth-root-authentication-method=normal", "--skip-test-db"])
        .output()
        .map_err(failed)?;
    if !installed.status.success() {
        let printed = [installed.stdout, installed.stderr].concat();
        return Err(format!("{INSTALL}: {}", String::from_utf8_lossy(&printed)));
    }
    // In one step, so that others find a whole template or none. The second of two uses the first one's.
    match fs::rename(&data, &finished) {
        Err(error) if !finished.is_dir() => Err(failed(error)),
        _ => Ok(finished),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp").arg("-R").args([from, to]).output().map_err(|e| format!("cp: {e}"))?;
    if copied.status.success() { Ok(()) } else { Err(format!("cp: {}", String::from_utf8_lossy(&copied.stderr))) }
}

/// The server refuses to run as root unless it is told to.
fn user() -> Option<&'static str> {
    is_root().then_some("--user=root")
}

/// Whether the server opens its handshake: a packet whose first byte is the protocol's version, ten.
fn greets(port: u16) -> bool {
    let first_bytes = || -> std::io::Result<[u8; 5]> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    first_bytes().is_ok_and(|bytes| bytes[4] == 10)
}
