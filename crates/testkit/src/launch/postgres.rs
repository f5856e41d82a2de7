//! Starts `PostgreSQL`, and `PgBouncer` before it: a server with an empty database `leasehold` and a superuser leasehold without a password.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::place::{copy, folder, place, template};
use super::ports::first_bytes;
use super::process::{Launch, Process, on_a_free_port};
use super::programs::{is_root, need, run};
use super::settings::Settings;

/// The program of a `PostgreSQL` server.
pub const PROGRAM: &str = "postgres";

/// The program that makes a data directory.
pub const INSTALL: &str = "initdb";

/// The program of a pooler before such servers.
pub const POOLER: &str = "pgbouncer";

/// Starts a server on a free port, in a folder of its own below `parent`, and waits until it accepts logins.
pub fn start(parent: &Path, settings: &Settings) -> Result<Process, String> {
    start_from(&template("postgres", PROGRAM, make)?, parent, settings)
}

/// Starts a server as [`start`] does, which also speaks TLS, with copies of the certificate and key in these files.
pub fn start_with_tls(parent: &Path, [cert, key]: [&Path; 2]) -> Result<Process, String> {
    let folder = parent.join("tls");
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    fs::create_dir(&folder).map_err(failed)?;
    passable(parent, &folder)?;
    let mut arguments = vec!["-c".to_owned(), "ssl=on".to_owned()];
    for (setting, original) in [("ssl_cert_file", cert), ("ssl_key_file", key)] {
        let file = folder.join(setting);
        fs::copy(original, &file).map_err(failed)?;
        // The server takes no key that others can read.
        fs::set_permissions(&file, Permissions::from_mode(0o600)).map_err(failed)?;
        give_to_the_server(&file)?;
        arguments.extend(["-c".to_owned(), format!("{setting}={}", file.display())]);
    }
    start(parent, &Settings::arguments(arguments))
}

/// Starts a server as [`start`] does, on a copy of the data in this folder.
fn start_from(data: &Path, parent: &Path, settings: &Settings) -> Result<Process, String> {
    let usual = [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        // What would be left in the system when the server is killed is in its folder.
        "dynamic_shared_memory_type=mmap",
        "shared_buffers=32MB",
        "max_connections=300",
        // The data need not survive the machine.
        "fsync=off",
    ];
    let settings = settings.behind(usual.into_iter().flat_map(|setting| ["-c", setting]));
    launch(PROGRAM, parent, |port, folder| {
        copy(data, &folder.join("data"))?;
        Ok(settings.behind(["-D", &folder.join("data").display().to_string(), &format!("-p{port}")]))
    })
}

/// Starts one of the programs on a free port, as the server's user, with the settings that are answered to its port and its folder.
fn launch(
    program: &str,
    parent: &Path,
    settings: impl Fn(u16, &Path) -> Result<Settings, String>,
) -> Result<Process, String> {
    on_a_free_port(|port| {
        let folder = folder(parent, "postgres", port)?;
        passable(parent, &folder)?;
        let mut settings = settings(port, &folder)?;
        // `env`, which sets the variables, then runs what becomes the other user.
        settings.variables.extend(other_user()?);
        Launch { program: need(program)?, settings, port, folder, ready: lets_in }.start(&[])
    })
}

/// Starts a standby of the server on this port, which answers queries.
pub fn start_standby(primary: u16, parent: &Path) -> Result<Process, String> {
    let copy = tempfile::tempdir_in(place()).map_err(|e| format!("a temporary folder: {e}"))?;
    give_to_the_server(copy.path())?;
    let data = copy.path().join("data");
    let source = ["-h", "127.0.0.1", "-U", "leasehold", "-c", "fast", "-X", "stream", "-R", "-N", "-p"];
    run(as_server("pg_basebackup")?.args(source).arg(primary.to_string()).arg("-D").arg(&data))?;
    start_from(&data, parent, &Settings::default())
}

/// Starts a pooler before the server on this port, in transaction mode, with two connections to the server.
pub fn start_pooler(server: u16, parent: &Path) -> Result<Process, String> {
    launch(POOLER, parent, |port, folder| {
        let settings = format!(
            "[databases]\nleasehold = host=127.0.0.1 port={server} user=leasehold\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nunix_socket_dir =\n"
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Settings::arguments([file.display()]))
    })
}

/// The address of a server's database as user leasehold, whom it asks for no password.
pub fn url(port: u16) -> String {
    format!("postgres://leasehold@127.0.0.1:{port}/leasehold")
}

/// Makes an empty data directory with the database.
fn make(data: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", data.display());
    give_to_the_server(data.parent().unwrap_or(data))?;
    let names = ["--username=leasehold", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"];
    run(as_server(INSTALL)?.args(names).arg("--pgdata").arg(data))?;
    let mut create = as_server(PROGRAM)?;
    create.args(["--single", "-F", "-D"]).arg(data).arg("postgres").stdin(Stdio::piped());
    let mut child = create.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(b"CREATE DATABASE leasehold\n").map_err(failed)?;
    }
    child.wait().map(drop).map_err(failed)
}

/// Makes a file, or a folder, that of the user as whom the server runs.
fn give_to_the_server(file: &Path) -> Result<(), String> {
    let Some((user, group)) = server_user()? else { return Ok(()) };
    chown(file, Some(user), Some(group)).map_err(|e| format!("{}: {e}", file.display()))
}

/// Lets the user as whom the server runs pass through these folders.
fn passable(parent: &Path, folder: &Path) -> Result<(), String> {
    for folder in [parent, folder].iter().filter(|_| is_root()) {
        let passable = fs::set_permissions(folder, Permissions::from_mode(0o711));
        passable.map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    Ok(())
}

/// A command for this program of the server, as the user as whom the server runs.
fn as_server(program: &str) -> Result<Command, String> {
    let mut command = Command::new("env");
    command.args(other_user()?).arg(need(program)?).current_dir(std::env::temp_dir());
    Ok(command)
}

/// The words before a command that run it as another user, where this process is root: the server refuses that.
fn other_user() -> Result<Vec<String>, String> {
    let words = |(user, group)| {
        vec!["setpriv".into(), format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".into()]
    };
    Ok(server_user()?.map(words).unwrap_or_default())
}

/// The ids of the user and the group as which the server runs: where this process is root, those of the server's package,
/// else of nobody.
fn server_user() -> Result<Option<(u32, u32)>, String> {
    if !is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|e| format!("/etc/passwd: {e}"))?;
    let ids_of = |name: &str| {
        let mut fields =
            users.lines().map(|line| line.split(':')).find(|fields| fields.clone().next() == Some(name))?;
        Some((fields.nth(2)?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids_of("postgres").or_else(|| ids_of("nobody")).map(Some).ok_or_else(|| "no user to run PostgreSQL as".into())
}

/// Whether the server lets the user in.
fn lets_in(server: &Process) -> bool {
    let login = b"\0\x03\0\0user\0leasehold\0database\0leasehold\0\0";
    let length = u32::try_from(login.len() + 4).unwrap_or_default();
    let login = [&length.to_be_bytes(), login.as_slice()].concat();
    first_bytes(server.port(), &login, Duration::from_secs(1)).is_ok_and(|first| first == *b"R")
}
