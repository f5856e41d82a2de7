use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_core::Clock;
use leasehold_core::conformance::needs_or_why;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tempfile::TempDir;

/// A private `MariaDB` on a free port of the loopback interface, with an empty database `leasehold` and a user root
/// without a password. It ends with this value, and with this process whatever happens to it.
#[derive(Debug)]
pub struct Server {
    child: Option<Child>,
    arguments: Vec<String>,
    port: u16,
    folder: TempDir,
}

/// Runs the server beside a reader of a pipe whose other end this process holds: when this process is gone, also by
/// SIGKILL, the pipe closes and the reader ends the server and its data.
const WATCHED: &str = r#"
exec 3<&0
folder=$1; shift
"$@" </dev/null 3<&- >/dev/null 2>&1 &
server=$!
trap '' HUP INT TERM
(read -r word <&3; kill -9 "$server" 2>/dev/null; [ "$word" = keep ] || rm -rf "$folder") &
reader=$!
wait "$server"
# A server that ended by itself leaves nothing for the reader to do.
[ $? = 137 ] || kill -9 "$reader" 2>/dev/null
exit 0
"#;

const PATIENCE: Duration = Duration::from_secs(30);

impl Server {
    /// Starts one with these arguments beside the usual ones, and waits until it answers. Those that do not begin with a
    /// dash are variables of its environment, such as `TZ=…`.
    ///
    /// # Errors
    /// Why it cannot be: no server is installed, or it ended.
    pub async fn start(arguments: &[&str]) -> Result<Self, String> {
        Self::start_in(&std::env::temp_dir(), arguments).await
    }

    /// The same, with its data in a folder of its own below this one.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_in(place: &Path, arguments: &[&str]) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        let folder = tempfile::Builder::new().prefix("leasehold-mariadb-").tempdir_in(place).map_err(text)?;
        copy(&template()?, &folder.path().join("data"))?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr()).map_err(text)?.port();
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut server = Self { child: None, arguments, port, folder };
        server.restart().await?;
        let mut session = server.session().await?;
        let created = session.query_drop("CREATE DATABASE IF NOT EXISTS leasehold").await;
        // A server that starts read-only has it from its template.
        created.or_else(|error| if error.to_string().contains("1290") { Ok(()) } else { Err(error.to_string()) })?;
        Ok(server)
    }

    /// The same, for a test that is ignored where there is no server: does not return then.
    pub async fn needed(arguments: &[&str]) -> Self {
        Self::needed_in(&std::env::temp_dir(), arguments).await
    }

    /// The same, with its data in a folder of its own below this one.
    pub async fn needed_in(place: &Path, arguments: &[&str]) -> Self {
        needs_or_why("MariaDB or MySQL", Self::start_in(place, arguments).await)
    }

    /// Starts it again on its data.
    ///
    /// # Errors
    /// If it does not answer within half a minute.
    pub async fn restart(&mut self) -> Result<(), String> {
        let folder = self.folder.path();
        let path = |name: &str| folder.join(name).display().to_string();
        let mut command = Command::new("sh");
        let (arguments, variables): (Vec<_>, Vec<_>) =
            self.arguments.iter().partition(|argument| argument.starts_with('-'));
        command.args(["-c", WATCHED, "watch"]).arg(folder).arg("env").args(variables);
        command.args(["mariadbd", "--no-defaults"]).args(user());
        command.args([
            format!("--datadir={}", path("data")),
            // In a folder that several servers share, one may remove what another is about to open.
            format!("--tmpdir={}", path("data")),
            "--socket=socket".into(),
            format!("--port={}", self.port),
            "--bind-address=127.0.0.1".into(),
            format!("--pid-file={}", path("pid")),
            format!("--log-error={}", path("log")),
            "--skip-name-resolve".into(),
            "--innodb-buffer-pool-size=64M".into(),
            "--performance-schema=OFF".into(),
        ]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().map_err(|error| error.to_string())?);
        let clock = Clock::system();
        let limit = clock.now().plus(PATIENCE);
        loop {
            let Err(error) = self.session().await else { return Ok(()) };
            if clock.now() >= limit {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                return Err(format!("the server does not answer: {error}\n{log}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it as a power cut would, and keeps its data.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            if let Some(mut pipe) = child.stdin.take() {
                drop(io::Write::write_all(&mut pipe, b"keep\n"));
            }
            drop(child.wait());
        }
    }

    /// Stops it in its tracks: connections stay open and new ones are accepted, and nothing is answered.
    ///
    /// # Panics
    /// If it cannot be.
    pub fn pause(&self) {
        let pid = self.pid().unwrap_or_else(|| panic!("it does not run")).to_string();
        let stopped = Command::new("kill").args(["-STOP", &pid]).status();
        assert!(stopped.is_ok_and(|status| status.success()), "it cannot be stopped");
    }

    /// The id of its process; `None` while it has none.
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.folder.path().join("pid")).ok()?.trim().parse().ok()
    }

    /// Where it listens.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens: a URL with its database.
    pub fn url(&self) -> String {
        self.url_of("root", "")
    }

    /// The same for another user.
    pub fn url_of(&self, user: &str, password: &str) -> String {
        let trust = if password.is_empty() { "pool_min=0" } else { "allow_public_key_retrieval=true" };
        format!("mysql://{user}:{password}@127.0.0.1:{}/leasehold?{trust}", self.port)
    }

    /// Runs statements as root, one after the other.
    ///
    /// # Panics
    /// If one fails.
    pub async fn sql(&self, statements: &[&str]) {
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        for statement in statements {
            let done = session.query_drop(*statement).await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    /// One number of `SHOW GLOBAL STATUS`; zero if there is none of this name.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn status(&self, name: &str) -> u64 {
        let mut session = self.session().await.unwrap_or_else(|why| panic!("no session: {why}"));
        let row: Option<(String, u64)> = session
            .query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))
            .await
            .unwrap_or_else(|error| panic!("status: {error}"));
        row.map_or(0, |(_, value)| value)
    }

    /// A session of root's past everything that this crate does.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub async fn session(&self) -> Result<Conn, String> {
        // Else the driver asks for these, and its question is among the statements that are counted.
        let settings = "prefer_socket=false&max_allowed_packet=16777216&wait_timeout=28800";
        let url = format!("mysql://root@127.0.0.1:{}/?{settings}", self.port);
        let opts = Opts::from_url(&url).map_err(|error| error.to_string())?;
        Conn::new(opts).await.map_err(|error| error.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closing the pipe ends the server, and removes its folder.
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            drop(child.wait());
        }
    }
}

/// An empty data directory of this version of the server. Made once: that takes seconds, a copy a fraction of one.
fn template() -> Result<PathBuf, String> {
    let text = |error: io::Error| format!("the server's template: {error}");
    let version = Command::new("mariadbd").args(["--no-defaults", "--version"]).output();
    let version = version.map_err(|error| format!("mariadbd cannot be run: {error}"))?.stdout;
    let version: String = version.into_iter().filter(u8::is_ascii_digit).map(char::from).collect();
    let finished = std::env::temp_dir().join(format!("leasehold-mariadb-template-{version}"));
    if finished.is_dir() {
        return Ok(finished);
    }
    let unfinished = tempfile::tempdir().map_err(text)?;
    let data = unfinished.path().join("data");
    let mut install = Command::new("mariadb-install-db");
    install.arg("--no-defaults").args(user()).arg(format!("--datadir={}", data.display()));
    let installed = install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]).output();
    let installed = installed.map_err(|error| format!("mariadb-install-db cannot be run: {error}"))?;
    if !installed.status.success() {
        return Err(format!("mariadb-install-db: {}", String::from_utf8_lossy(&installed.stderr)));
    }
    // In one step, so that others find a whole template or none. Whoever is second uses the first one's.
    match fs::rename(&data, &finished) {
        Err(error) if !finished.is_dir() => Err(text(error)),
        _ => Ok(finished),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = Command::new("cp").arg("-R").args([from, to]).output().map_err(|error| format!("cp: {error}"))?;
    if copied.status.success() { Ok(()) } else { Err(format!("cp: {}", String::from_utf8_lossy(&copied.stderr))) }
}

/// The server refuses to run as root unless it is told to.
fn user() -> Option<&'static str> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    root.then_some("--user=root")
}
