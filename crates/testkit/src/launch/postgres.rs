//! Starts `PostgreSQL`, and `PgBouncer` before it: a server with an empty database `leasehold` and a superuser leasehold without a password.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::place::place;
use super::process::{Lifetime, Process, on_a_free_port};
use super::programs::{is_root, need};
use super::settings::Settings;

/// The program of a `PostgreSQL` server.
pub const PROGRAM: &str = "postgres";

/// The program that makes a data directory.
pub const INSTALL: &str = "initdb";

/// The program of a pooler before such servers.
pub const POOLER: &str = "pgbouncer";

/// Starts a server on a free port, in a folder of its own below `parent`, and waits until it accepts logins.
///
/// # Errors
/// When the server is not installed or does not start; with the end of its log.
pub fn start(parent: &Path, settings: &Settings, lifetime: Lifetime) -> Result<Process, String> {
    start_from(&template()?, parent, settings, lifetime)
}

/// Starts a server as [`start`] does, which also speaks TLS, with copies of the certificate and key in these files.
///
/// # Errors
/// As for [`start`].
pub fn start_with_tls(parent: &Path, [cert, key]: [&Path; 2], lifetime: Lifetime) -> Result<Process, String> {
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
        if let Some((user, group)) = server_user()? {
            chown(&file, Some(user), Some(group)).map_err(failed)?;
        }
        arguments.extend(["-c".to_owned(), format!("{setting}={}", file.display())]);
    }
    start(parent, &Settings { arguments, variables: Vec::new() }, lifetime)
}

/// Starts a server as [`start`] does, on a copy of the data in this folder.
///
/// # Errors
/// As for [`start`].
fn start_from(data: &Path, parent: &Path, settings: &Settings, lifetime: Lifetime) -> Result<Process, String> {
    on_a_free_port(|port| {
        let folder = folder(parent, port);
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        run(Command::new("cp").arg("-a").args([data, &folder.join("data")]))?;
        start_on(port, parent, settings, lifetime)
    })
}

/// Starts a server again on the data that it left below `parent` when it listened on this port.
///
/// # Errors
/// As for [`start`].
pub fn start_on(port: u16, parent: &Path, settings: &Settings, lifetime: Lifetime) -> Result<Process, String> {
    let folder = folder(parent, port);
    passable(parent, &folder)?;
    let mut arguments = vec!["-D".to_owned(), folder.join("data").display().to_string(), format!("-p{port}")];
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        // What would be left in the system when the server is killed is in its folder.
        "dynamic_shared_memory_type=mmap",
        "shared_buffers=32MB",
        "max_connections=300",
        // The data need not survive the machine.
        "fsync=off",
    ] {
        arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }
    arguments.extend(settings.arguments.iter().cloned());
    // `env`, which sets the variables, then runs what becomes the other user.
    let variables = settings.variables.iter().cloned().chain(other_user()?).collect();
    let settings = Settings { arguments, variables };
    let mut server = Process::start(&need(PROGRAM)?, &settings, port, &folder, lifetime)?;
    server.wait_until(lets_in)?;
    Ok(server)
}

/// Starts a standby of the server on this port, which answers queries.
///
/// # Errors
/// As for [`start`].
pub fn start_standby(primary: u16, parent: &Path, lifetime: Lifetime) -> Result<Process, String> {
    let copy = folder_of_the_server()?;
    let data = copy.path().join("data");
    let source = ["-h", "127.0.0.1", "-U", "leasehold", "-c", "fast", "-X", "stream", "-R", "-N", "-p"];
    run(as_server("pg_basebackup")?.args(source).arg(primary.to_string()).arg("-D").arg(&data))?;
    start_from(&data, parent, &Settings::default(), lifetime)
}

/// Starts a pooler before the server on this port, in transaction mode, with two connections to the server.
///
/// # Errors
/// As for [`start`].
pub fn start_pooler(server: u16, parent: &Path, lifetime: Lifetime) -> Result<Process, String> {
    on_a_free_port(|port| {
        let folder = folder(parent, port);
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        passable(parent, &folder)?;
        let settings = format!(
            "[databases]\nleasehold = host=127.0.0.1 port={server} user=leasehold\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nunix_socket_dir =\n"
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).map_err(|e| format!("{}: {e}", file.display()))?;
        let settings = Settings { arguments: vec![file.display().to_string()], variables: other_user()? };
        let mut pooler = Process::start(&need(POOLER)?, &settings, port, &folder, lifetime)?;
        pooler.wait_until(lets_in)?;
        Ok(pooler)
    })
}

/// The address of a server's database as user leasehold, whom it asks for no password.
pub fn url(port: u16) -> String {
    format!("postgres://leasehold@127.0.0.1:{port}/leasehold")
}

/// The folder of the server on this port.
fn folder(parent: &Path, port: u16) -> PathBuf {
    parent.join(format!("postgres-{port}"))
}

/// An empty data directory of this version of the server. Made once: that takes seconds, a copy a fraction of one.
fn template() -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("PostgreSQL's template: {e}");
    let version = Command::new(need(PROGRAM)?).arg("--version").output().map_err(failed)?.stdout;
    let version: String = version.into_iter().filter(u8::is_ascii_digit).map(char::from).collect();
    let finished = place().join(format!("leasehold-postgres-template-{version}"));
    if finished.is_dir() {
        return Ok(finished);
    }
    let unfinished = folder_of_the_server()?;
    let data = unfinished.path().join("data");
    let names = ["--username=leasehold", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"];
    run(as_server(INSTALL)?.args(names).arg("--pgdata").arg(&data))?;
    let mut create = as_server(PROGRAM)?;
    create.args(["--single", "-F", "-D"]).arg(&data).arg("postgres").stdin(Stdio::piped());
    let mut child = create.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(b"CREATE DATABASE leasehold\n").map_err(failed)?;
    }
    child.wait().map_err(failed)?;
    // In one step, so that others find a whole template or none. The second of two uses the first one's.
    match fs::rename(&data, &finished) {
        Err(error) if !finished.is_dir() => Err(failed(error)),
        _ => Ok(finished),
    }
}

/// A temporary folder that belongs to the user as whom the server runs.
fn folder_of_the_server() -> Result<tempfile::TempDir, String> {
    let failed = |e: std::io::Error| format!("a temporary folder: {e}");
    let folder = tempfile::tempdir_in(place()).map_err(failed)?;
    if let Some((user, group)) = server_user()? {
        chown(folder.path(), Some(user), Some(group)).map_err(failed)?;
    }
    Ok(folder)
}

/// Lets the user as whom the server runs pass through these folders.
fn passable(parent: &Path, folder: &Path) -> Result<(), String> {
    for folder in [parent, folder].iter().filter(|_| is_root()) {
        let passable = fs::set_permissions(folder, Permissions::from_mode(0o711));
        passable.map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = command.output().map_err(|e| format!("{name}: {e}"))?;
    if ended.status.success() { Ok(()) } else { Err(format!("{name}: {}", String::from_utf8_lossy(&ended.stderr))) }
}

/// A command for this program of the server, as the user as whom the server runs.
///
/// # Errors
/// When it is not installed.
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
fn lets_in(port: u16) -> bool {
    let first_byte = || -> std::io::Result<u8> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let login = b"\0\x03\0\0user\0leasehold\0database\0leasehold\0\0";
        let length = u32::try_from(login.len() + 4).unwrap_or_default();
        stream.write_all(&[&length.to_be_bytes(), login.as_slice()].concat())?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        Ok(first[0])
    };
    first_byte().is_ok_and(|first| first == b'R')
}
