//! Starts `MariaDB`: a server with an empty database `leasehold` and a user root without a password.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::place::{copy, folder, template};
use super::ports::first_bytes;
use super::process::{Launch, Process, on_a_free_port};
use super::programs::{is_root, need, run};
use super::settings::Settings;

/// The program of a `MariaDB` server.
pub const PROGRAM: &str = "mariadbd";

/// The program that makes a data directory.
pub const INSTALL: &str = "mariadb-install-db";

/// Every server begins with a copy of its log.
const LOG_SIZE: &str = "--innodb-log-file-size=8M";

/// Starts a server on a free port, in a folder of its own below `parent`, and waits until it accepts logins.
pub fn start(parent: &Path, settings: &Settings) -> Result<Process, String> {
    let template = template("mariadb", PROGRAM, |data| {
        let mut install = Command::new(need(INSTALL)?);
        install.arg("--no-defaults").args(user()).arg(format!("--datadir={}", data.display()));
        run(install.args([LOG_SIZE, "--auth-root-authentication-method=normal", "--skip-test-db"]))
    })?;
    on_a_free_port(|port| {
        let folder = folder(parent, "mariadb", port)?;
        let data = folder.join("data");
        copy(&template, &data)?;
        // A folder is a database: of the server's own character set, as if it had been created by a statement.
        fs::create_dir(data.join("leasehold")).map_err(|e| format!("{}: {e}", data.display()))?;
        let usual = [
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
        ];
        // This one has to be the first.
        let first = ["--no-defaults"].into_iter().chain(user());
        let settings = settings.behind(usual).behind(first);
        Launch { program: need(PROGRAM)?, settings, port, folder, ready: greets }.start(&[])
    })
}

/// The address of a server's database as user root, whom it asks for no password.
pub fn url(port: u16) -> String {
    format!("mysql://root@127.0.0.1:{port}/leasehold")
}

/// The statement by which a server becomes the replica of the one on this port.
pub fn follow(primary: u16) -> String {
    format!(
        "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {primary}, master_user = 'root', master_use_gtid = \
         slave_pos, master_connect_retry = 1"
    )
}

/// The server refuses to run as root unless it is told to.
fn user() -> Option<&'static str> {
    is_root().then_some("--user=root")
}

/// Whether the server opens its handshake: a packet whose first byte is the protocol's version, ten.
fn greets(server: &Process) -> bool {
    first_bytes::<5>(server.port(), b"", Duration::from_secs(1)).is_ok_and(|bytes| bytes[4] == 10)
}
