//! `MariaDB`: a server with an empty database `leasehold` and a root user without a password.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Duration;

use super::ports::free_port;
use super::process::Process;
use super::{Running, Service, Site};
use crate::install;
use crate::workspace::target;

/// One `MariaDB` server.
#[derive(Debug)]
pub(super) struct MariaDb;

impl Service for MariaDb {
    fn variable(&self) -> &'static str {
        "LEASEHOLD_TEST_MYSQL"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["mariadbd", "mariadb-install-db"]
    }

    fn start(&self, site: &Site) -> Result<Running, String> {
        let program = install::find("mariadbd").ok_or("mariadbd is not installed")?;
        let port = free_port()?;
        let folder = site.folder.join(format!("mariadb-{port}"));
        let data = folder.join("data");
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        copy(&template(&program)?, &data)?;
        let init = folder.join("init.sql");
        fs::write(&init, "CREATE DATABASE IF NOT EXISTS leasehold;\n").map_err(|e| e.to_string())?;

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
            format!("--init-file={}", init.display()),
            "--skip-name-resolve".into(),
            "--max-connections=500".into(),
            "--innodb-buffer-pool-size=64M".into(),
            "--performance-schema=OFF".into(),
        ]);
        let mut server = Process::start(site.lifetime, &program, &arguments, port, &folder)?;
        server.wait_until(greets)?;
        Ok(Running { url: format!("mysql://root@127.0.0.1:{port}/leasehold"), processes: vec![server] })
    }
}

/// An empty data directory of this version of the server. Made once: that takes seconds, a copy a fraction of one.
fn template(program: &Path) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("MariaDB's template: {e}");
    let version = Command::new(program).args(["--no-defaults", "--version"]).output().map_err(failed)?.stdout;
    let finished = target().join("services/mariadb-template");
    let is_current = || fs::read(finished.join("version")).is_ok_and(|made_by| made_by == version);
    if is_current() {
        return Ok(finished.join("data"));
    }

    let unfinished = target().join(format!("services/mariadb-template.{}", process::id()));
    fs::create_dir_all(&unfinished).map_err(failed)?;
    let install = install::find("mariadb-install-db").ok_or("mariadb-install-db is not installed")?;
    let installed = Command::new(install)
        .arg("--no-defaults")
        .args(user())
        .arg(format!("--datadir={}", unfinished.join("data").display()))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .output()
        .map_err(failed)?;
    if !installed.status.success() {
        let printed = [installed.stdout, installed.stderr].concat();
        return Err(format!("mariadb-install-db: {}", String::from_utf8_lossy(&printed)));
    }
    fs::write(unfinished.join("version"), &version).map_err(failed)?;
    if is_current() {
        // Another run was faster, and may be copying from its own.
        drop(fs::remove_dir_all(&unfinished));
    } else {
        // In one step, so that a run that is broken off never leaves half a template.
        drop(fs::remove_dir_all(&finished));
        fs::rename(&unfinished, &finished).map_err(failed)?;
    }
    Ok(finished.join("data"))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp").arg("-R").args([from, to]).output().map_err(|e| format!("cp: {e}"))?;
    if copied.status.success() {
        return Ok(());
    }
    Err(format!("cp: {}", String::from_utf8_lossy(&copied.stderr)))
}

/// `MariaDB` refuses to run as root unless it is told to.
fn user() -> Option<&'static str> {
    install::is_root().then_some("--user=root")
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
