//! `leasehold agent`: the same lines at a socket, for all processes of a host.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use leasehold_testkit::{Deadline, KilledOnDrop, PATIENCE, eventually_some, launch::find, needs, test};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::hold::Client;
use crate::pages::{is_like, shell, steps, words};
use crate::support::{Ended, Place, Running, redis};

/// An agent that runs, with a folder of its own for its socket.
pub(crate) struct Agent {
    program: Running,
    folder: TempDir,
}

impl Agent {
    /// Starts an agent on this store, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(place: &Place, options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Running::start(&mut agent(place, &folder, options));
        let agent = Self { program, folder };
        listens(&agent.folder);
        agent
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.folder)
    }

    /// The store, as those see it who ask this agent.
    pub(crate) fn place(&self) -> Place {
        at(&self.folder)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }

    #[track_caller]
    fn client(&self) -> Connection {
        Connection::at(&self.folder)
    }

    #[track_caller]
    fn asks(&self, request: &Value) -> Connection {
        self.client().asking(request)
    }
}

fn socket(folder: &TempDir) -> PathBuf {
    folder.path().join("agent.sock")
}

fn at(folder: &TempDir) -> Place {
    Place::at(format!("agent:{}", socket(folder).display()))
}

fn agent(place: &Place, folder: &TempDir, options: &str) -> Command {
    place.leasehold(&format!("agent --socket {} {options}", socket(folder).display()))
}

#[track_caller]
fn listens(folder: &TempDir) {
    eventually_some("the agent listens", || UnixStream::connect(socket(folder)).ok());
}

/// How one ends that must not start.
#[track_caller]
fn refused(place: &Place, folder: &TempDir, options: &str) -> Ended {
    Running::start(&mut agent(place, folder, options)).end_by_itself()
}

/// A connection to an agent.
struct Connection(BufReader<UnixStream>);

impl Client for Connection {
    fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }
}

impl Connection {
    #[track_caller]
    fn at(folder: &TempDir) -> Self {
        let stream = UnixStream::connect(socket(folder)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self(BufReader::new(stream));
        assert_eq!(client.told(), json!({"leasehold": 1}));
        client
    }

    #[track_caller]
    fn asking(mut self, request: &Value) -> Self {
        self.says(request);
        self
    }

    #[track_caller]
    fn is_closed(&mut self) {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

#[test]
fn clients_that_never_read_or_write_without_end_hold_up_nobody() {
    let place = Place::file();
    let agent = Agent::start(&place, "");
    let stream = agent.asks(&json!({"lock": "deaf"})).0.into_inner();
    stream.set_nonblocking(true).unwrap();
    let many = b"{}\n".repeat(10_000);
    for round in 0..20 {
        // As much as the agent takes, or more than it reads at a time.
        let _ = (0..100).all(|_| (&stream).write(&many).is_ok());
        agent.asks(&json!({"lock": format!("k{round}")})).is_granted();
    }
    let mut endless = agent.client();
    // The agent may have ended the connection before it has read all.
    let _ = endless.0.get_mut().write_all("x".repeat(70_000).as_bytes());
    endless.is_refused("usage", false);
    assert!(!place.is_free("deaf"));
}

/// The option that names a policy with these lines.
pub(crate) fn policy(folder: &TempDir, lines: &str, mode: u32) -> String {
    let file = folder.path().join("policy");
    fs::write(&file, lines).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    format!("--policy {}", file.display())
}

#[test]
fn a_policy_says_who_may_lock_what() {
    let (place, folder) = (Place::file(), tempfile::tempdir().unwrap());
    let lines = format!("# ours\nuser:{} ours/\nuser:nobody-at-all *\n* tmp/", getuid().as_raw());
    let agent = Agent::start(&place, &policy(&folder, &lines, 0o644));
    for request in [json!({"lock": "ours/a"}), json!({"lock": "tmp/a"})] {
        agent.asks(&request).is_granted();
    }
    for request in [
        json!({"lock": "theirs/a"}),
        json!({"keys": ["ours/b", "theirs/b"]}),
        json!({"lock": "ours", "permits": 2}),
        json!({"elect": "theirs/c"}),
    ] {
        agent.asks(&request).is_refused("refused", false);
    }
}

#[test]
fn a_user_has_no_more_than_the_policy_allows() {
    let (place, folder) = (Place::file(), tempfile::tempdir().unwrap());
    let agent = Agent::start(&place, &policy(&folder, "* * keys=2 connections=3", 0o600));
    let gets = |keys: [&str; 2]| {
        eventually_some("there is room", || {
            let mut client = agent.asks(&json!({ "keys": keys }));
            client.answer()["held"].is_object().then_some(client)
        })
    };
    // The connection with which the test saw that the agent listens has to be gone.
    let mut two = gets(["a", "b"]);
    agent.asks(&json!({"lock": "c"})).is_refused("refused", true);
    let _others = [0, 1].map(|_| agent.client());
    let mut fourth = agent.client();
    fourth.is_refused("refused", true);
    fourth.is_closed();
    two.says(r#"{"release":true}"#);
    assert_eq!(two.answer(), json!({"released": true}));
    drop(gets(["c", "d"]));
}

/// As many as the policy allows, where a process begins with a small limit of descriptors.
#[test]
fn the_soft_limit_of_files_is_none_for_clients() {
    let (place, folder) = (Place::file(), tempfile::tempdir().unwrap());
    let mut script = Command::new("sh");
    script.args(["-c", "ulimit -S -n 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_leasehold")]);
    let agent = agent(&place, &folder, "");
    script.args(agent.get_args()).envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let _agent = Running::start(&mut script);
    listens(&folder);
    let _clients: Vec<_> = (0..90).map(|_| Connection::at(&folder)).collect();
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let (place, folder) = (Place::file(), tempfile::tempdir().unwrap());
    drop(UnixListener::bind(socket(&folder)).unwrap());
    let program = Running::start(&mut agent(&place, &folder, ""));
    listens(&folder);
    let mut client = Connection::at(&folder);
    assert_eq!(fs::metadata(socket(&folder)).unwrap().permissions().mode() & 0o777, 0o660);
    refused(&place, &folder, "").is(78, &["another agent listens there"]);
    refused(&place, &folder, &policy(&folder, "* *", 0o622)).is(78, &["others can write to it"]);
    refused(&place, &folder, &policy(&folder, "ada *", 0o600)).is(78, &["line 1: \"ada\" is neither"]);
    client.says(r#"{"lock":"k"}"#);
    client.is_granted();

    program.signal(Signal::TERM);
    program.end_by_itself().is(0, &[]);
    assert!(!socket(&folder).exists(), "it is removed at the end");
    fs::write(socket(&folder), "kept").unwrap();
    refused(&place, &folder, "").is(78, &["it is not a socket"]);
    assert!(!fs::metadata(socket(&folder)).unwrap().file_type().is_socket());
}

#[test]
fn a_signal_releases_what_is_held_and_turns_away_who_waits() {
    let place = Place::file();
    let agent = Agent::start(&place, "");
    let mut holder = agent.asks(&json!({"lock": "k"}));
    holder.is_granted();
    let (mut waiter, mut idle) = (agent.asks(&json!({"lock": "k"})), agent.client());
    waiter.waits();
    assert_eq!(holder.told(), json!({"wanted": true}), "another process of the host waits");
    agent.signal(Signal::TERM);
    assert_eq!(holder.answer(), json!({"lost": "shutdown"}));
    waiter.is_refused("unavailable", true);
    idle.is_refused("unavailable", true);
    agent.program.end_by_itself().is(0, &[]);
    assert!(place.is_free("k"));
}

/// What a test does in place of systemd: it hands over sockets, and stores them.
struct Systemd {
    folder: TempDir,
    notified: UnixDatagram,
    listener: UnixListener,
}

impl Systemd {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notified = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        notified.set_read_timeout(Some(PATIENCE)).unwrap();
        let listener = UnixListener::bind(socket(&folder)).unwrap();
        Self { folder, notified, listener }
    }

    /// Starts the agent with the listening socket, and up to two descriptors more, by the names that they were stored under.
    #[track_caller]
    fn start(&self, place: &Place, stored: Vec<(String, OwnedFd)>) -> KilledOnDrop {
        let stored_before = stored.len();
        let names = stored.iter().fold("leasehold.socket".to_owned(), |names, (name, _)| format!("{names}:{name}"));
        let script = format!(
            "exec 3<&0 4<&1 5<&2 </dev/null >/dev/null 2>&1
             LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES={} exec \"$0\" agent --socket /nowhere/at/all",
            stored_before + 1,
            names,
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_leasehold")]).env("LEASEHOLD_BACKEND", place.backend());
        command.env("NOTIFY_SOCKET", self.folder.path().join("notify")).env("FDSTORE", "8");
        let mut fds = stored.into_iter().map(|(_, fd)| fd);
        let mut next = || fds.next().map_or_else(Stdio::null, Stdio::from);
        command.stdin(OwnedFd::from(self.listener.try_clone().unwrap())).stdout(next()).stderr(next());
        let agent = KilledOnDrop::spawn(&mut command).unwrap();
        let messages = std::iter::repeat_with(|| self.message().0);
        let forgotten = messages.take_while(|message| message != "READY=1").count();
        assert_eq!(forgotten, stored_before, "what it took over need not be stored any more");
        agent
    }

    #[track_caller]
    fn message(&self) -> (String, Option<OwnedFd>) {
        let mut text = [0; 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(&self.notified, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::empty());
        let length = received.unwrap().bytes;
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        (String::from_utf8_lossy(&text[..length]).into_owned(), fds.flatten().next())
    }

    /// Tells the agent to end, and returns what it leaves to be stored.
    #[track_caller]
    fn stop(&self, mut agent: KilledOnDrop) -> Vec<(String, OwnedFd)> {
        kill_process(Pid::from_child(&agent), Signal::TERM).unwrap();
        assert_eq!(self.message().0, "STOPPING=1");
        assert_eq!(agent.wait().unwrap().code(), Some(0));
        let mut stored = Vec::new();
        while rustix::net::recv(&self.notified, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok() {
            let (text, fd) = self.message();
            let name = text.strip_prefix("FDSTORE=1\nFDNAME=").unwrap_or_else(|| panic!("{text}")).to_owned();
            stored.push((name, fd.unwrap()));
        }
        stored
    }

    #[track_caller]
    fn asks(&self, request: &Value) -> Connection {
        Connection::at(&self.folder).asking(request)
    }
}

#[test]
fn an_agent_serves_at_the_socket_that_systemd_hands_over() {
    let (place, systemd) = (Place::file(), Systemd::new());
    let agent = systemd.start(&place, vec![]);
    let mut client = systemd.asks(&json!({"lock": "k"}));
    client.is_granted();
    assert!(systemd.stop(agent).is_empty(), "files cannot be detached");
    assert_eq!(client.answer(), json!({"lost": "shutdown"}));
    assert!(socket(&systemd.folder).exists(), "it is systemd's");
}

#[test]
fn a_restart_under_systemd_loses_no_lock_and_no_waiter_and_what_a_client_held_that_died_is_free_after_it() {
    let ((_server, place), systemd) = (redis(""), Systemd::new());
    let agent = systemd.start(&place, vec![]);
    let mut client = systemd.asks(&json!({"lock": "k", "ttl_ms": 60_000, "label": "own"}));
    let until = client.is_granted()["until"].as_f64().unwrap();
    // The first part of a line, of which the rest comes after the restart.
    client.write(b"{\"rel");
    let stored = systemd.stop(agent);
    assert_eq!(stored.len(), 2, "a socket, and what is known of it");
    assert!(!place.is_free("k"), "between the two it is held");

    let agent = systemd.start(&place, stored);
    assert!(client.told()["until"].as_f64().unwrap() > until, "the next one renews");
    let shown = place.inspect("k");
    let label = shown["holders"][0]["label"].as_str().unwrap();
    let kernels = format!(" pid {} ", std::process::id());
    assert!(label.contains(&kernels) && label.ends_with(" (own)") && !label.contains(") ("), "{label}");
    client.says("ease\":true}");
    assert_eq!(client.answer(), json!({"released": true}));
    client.is_closed();
    assert!(place.is_free("k"));

    let mut client = systemd.asks(&json!({"lock": "k", "ttl_ms": 3_600_000}));
    client.is_granted();
    let mut stored = systemd.stop(agent);
    assert_eq!(stored.len(), 2, "nothing of the one before");
    drop(client);
    // systemd forgets a connection that is closed.
    stored.retain(|(name, _)| !name.contains("-connection-"));
    assert!(!place.is_free("k"));
    let agent = systemd.start(&place, stored);
    place.wait_until_free("k");

    let holder = place.hold("k");
    let mut client = systemd.asks(&json!({"lock": "k"}));
    client.waits();
    let _agent = systemd.start(&place, systemd.stop(agent));
    client.waits();
    holder.end().is(0, &[]);
    client.is_granted();
}

/// Runs the transcript of `docs/agent.md`, and is systemd in it.
#[test]
fn three_languages_take_turns_over_a_restart() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("agent.md")).unwrap();
    let ((_server, place), systemd) = (redis(""), Systemd::new());
    let folder = systemd.folder.path();
    let text = page.replace("/run/leasehold.sock", socket(&systemd.folder).to_str().unwrap());
    let text = text.replace("redis://127.0.0.1:6379", place.backend());
    for block in text.split("\n```").filter_map(|block| block.split_once('\n')) {
        let names = ["worker.py", "worker.sh", "worker.mjs"];
        if let Some(name) = names.iter().find(|name| block.1.contains(&format!(" {name}\n"))) {
            fs::write(folder.join(name), block.1).unwrap();
        }
    }
    for client in ["leasehold.py", "leasehold.sh", "leasehold.mjs"] {
        fs::copy(docs.join("clients").join(client), folder.join(client)).unwrap();
    }
    for language in ["python3", "node"] {
        needs(language, find(language));
    }

    let mut agent = systemd.start(&place, vec![]);
    let mut shell = Running::start(shell().current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1"));
    let mut tokens = Vec::new();
    for step in steps(&text) {
        if step.command.starts_with("systemctl restart") {
            agent = systemd.start(&place, systemd.stop(agent));
            continue;
        }
        shell.type_in(format!("{}\n", step.command));
        for expected in &step.expected {
            // A try of one of the three may get no answer in time, where the machine is busy.
            let said = std::iter::repeat_with(|| shell.line()).find(|line| !line.starts_with("leasehold: "));
            let line = words(&said.unwrap());
            assert!(is_like(&line, expected), "{} printed {line:?}, and not {expected}", step.command);
            tokens.extend(line.rsplit(' ').next().and_then(|last| last.parse::<u64>().ok()));
        }
        // The agent itself does not ask the store for another client's turn before its own client has had the key.
        if step.command.ends_with("sh &") {
            eventually_some("the shell waits", || (place.inspect("invoice")["waiters"] == 1).then_some(()));
        }
    }
    shell.type_in("exit 7\n");
    shell.end_by_itself().is(7, &[]);
    assert!(tokens.len() == 3 && tokens.is_sorted(), "{tokens:?}");
    drop(agent);
}

/// A client that brings its own engine, as its lines.
impl Connection {
    fn with_steps(agent: &Agent) -> Self {
        let mut client = agent.asks(&json!({"steps": 2}));
        assert_eq!(client.told()["version"], 2);
        client
    }

    fn step(&mut self, number: u32, step: &Value) -> Value {
        self.says(json!([number, step]));
        self.told()[1].clone()
    }

    /// A step that is done, and what it answers is an object with this field.
    #[track_caller]
    fn gets(&mut self, number: u32, step: &Value, answer: &str) -> Value {
        let told = self.step(number, step);
        assert!(told["done"][answer].is_object(), "{step}: {told}");
        told["done"][answer].clone()
    }
}

fn grant(owner: &str) -> Value {
    json!({"key": "k", "owner": owner.repeat(32), "mode": "exclusive", "epoch": null})
}

fn claim(owner: &str) -> Value {
    let mut claim = grant(owner);
    (claim["ttl"], claim["waits"]) = (json!({"secs": 60, "nanos": 0}), json!(true));
    json!({ "try_acquire": claim })
}

/// An engine's last question has the owner id of those before, and does not wait.
fn last(owner: &str) -> Value {
    let mut last = claim(owner);
    last["try_acquire"]["waits"] = json!(false);
    last
}

#[test]
fn nobody_is_told_the_owner_of_another_programs_grant() {
    let (_server, place) = redis("");
    let agent = Agent::start(&place, "");
    let [mut holder, mut waiter, mut curious] = [(); 3].map(|()| Connection::with_steps(&agent));
    holder.gets(1, &claim("a"), "granted");
    for client in [&mut waiter, &mut curious] {
        assert_eq!(client.step(1, &json!({"subscribe": "k"})), json!({ "done": null }));
        let again = client.step(1, &json!({"subscribe": "k"}));
        assert!(again["failed"].is_object(), "a number stands for one subscription: {again}");
    }
    waiter.gets(2, &claim("b"), "queued");
    assert_eq!(holder.step(2, &json!({"release": grant("a")}))["done"], "held");
    assert_eq!(waiter.told()[1]["notified"]["granted"]["owner"], "b".repeat(32));
    curious.says(r#"[2,{"inspect":"k"}]"#);
    let told = curious.told();
    assert!(told[0] == 2 || told[1] == json!({"notified": "freed"}), "{told}");
}

/// As where the runtime of a program ends, and the program goes on.
#[test]
fn what_waits_on_a_connection_that_ends_keeps_nobody_waiting() {
    let (_server, place) = redis("");
    let agent = Agent::start(&place, "");
    let _holder = place.hold_with("--ttl 1h", "k");
    let is_gone_before_its_time = |owner: &str| {
        let [mut waiter, mut again] = [(); 2].map(|()| Connection::with_steps(&agent));
        waiter.gets(1, &claim(owner), "queued");
        again.gets(1, &claim(owner), "queued");
        drop(waiter);
        // It waits on another connection.
        again.gets(2, &claim(owner), "queued");
        again.gets(3, &last(owner), "busy");
        // Its position counts for three seconds.
        let counts = Deadline::after(Duration::from_secs(2));
        drop(again);
        while place.inspect("k")["waiters"] != 0 {
            if counts.is_over() {
                return false;
            }
        }
        // A release of it may be under way.
        Connection::with_steps(&agent).gets(1, &claim(owner), "busy");
        !counts.is_over()
    };
    // The machine may be busy.
    assert!(["a", "b", "c", "d", "e", "f"].into_iter().any(is_gone_before_its_time));
}

#[test]
fn what_is_granted_on_another_connection_is_not_given_up_with_the_first() {
    let (_server, place) = redis("");
    let agent = Agent::start(&place, "");
    let [mut holder, mut first, mut second, mut other] = [(); 4].map(|()| Connection::with_steps(&agent));
    holder.gets(1, &claim("a"), "granted");
    first.gets(1, &claim("b"), "queued");
    assert_eq!(holder.step(2, &json!({"release": grant("a")}))["done"], "held");
    second.gets(1, &last("b"), "granted");
    drop(first);
    let looked = Deadline::after(Duration::from_millis(500));
    while !looked.is_over() {
        // Or two hold the key.
        other.gets(1, &last("c"), "busy");
    }
}

#[test]
fn a_claim_that_a_limit_refuses_keeps_no_older_one_from_being_given_up() {
    let ((_server, place), folder) = (redis(""), tempfile::tempdir().unwrap());
    let agent = Agent::start(&place, &policy(&folder, "* * keys=1", 0o600));
    let _holder = place.hold("k");
    let [mut first, mut second] = [(); 2].map(|()| Connection::with_steps(&agent));
    first.gets(1, &claim("a"), "queued");
    assert!(second.step(1, &claim("a"))["failed"].is_object());
    drop(first);
    let answer = eventually_some("the limit has room", || {
        Some(second.step(2, &claim("a"))).filter(|answer| answer["failed"].is_null())
    });
    assert!(answer["done"]["busy"].is_object(), "a release of it may be under way: {answer}");
}

#[test]
fn what_a_program_says_of_its_grants_makes_no_room_for_more_of_them() {
    let ((_server, place), folder) = (redis("redis-rw:"), tempfile::tempdir().unwrap());
    let agent = Agent::start(&place, &policy(&folder, "* * keys=1", 0o600));
    let mut program = Connection::with_steps(&agent);
    let epoch = program.gets(1, &claim("a"), "granted")["epoch"].as_u64().unwrap();
    let grant = |mode: &str, epoch: u64| json!({"key": "k", "owner": "a".repeat(32), "mode": mode, "epoch": epoch});
    let minute = json!({"secs": 60, "nanos": 0});
    let reader =
        |key: &str| json!({"key": key, "owner": "b".repeat(32), "mode": "shared", "ttl": minute, "waits": false});
    let mut other = claim("c");
    other["try_acquire"]["key"] = json!("other");
    for step in [
        json!({"renew": [[{"grant": grant("exclusive", epoch + 1), "ttl": minute}], minute]}),
        json!({"downgrade": [grant("exclusive", epoch + 1), reader("k")]}),
        json!({"downgrade": [grant("exclusive", epoch), reader("other")]}),
    ] {
        program.step(2, &step);
        let refused = program.step(3, &other).to_string();
        assert!(refused.contains("1 keys at most"), "{step}: {refused}");
    }
    program.says(
        json!([3, {"holds": [[{"key": "other", "owner": "d".repeat(32), "mode": "exclusive", "epoch": 1}, minute]]}]),
    );
    // A limit of one keeps no writer from becoming a reader.
    program.gets(4, &json!({"downgrade": [grant("exclusive", epoch), reader("k")]}), "granted");
    assert!(program.step(5, &other)["failed"].is_object());
    let reader = json!({"key": "k", "owner": "b".repeat(32), "mode": "shared", "epoch": null});
    assert_eq!(program.step(6, &json!({ "release": reader }))["done"], "held");
    program.gets(7, &other, "granted");
}

/// The lease is over before the agent has answered.
#[test]
fn a_lock_that_nobody_answers_the_release_of_was_not_lost_while_the_command_ran() {
    let (_server, place) = redis("");
    let agent = Agent::start(&place, "");
    let ended = agent.place().run(&format!("run --ttl 1s k -c 'kill -STOP {}'", agent.program.id()));
    agent.signal(Signal::CONT);
    ended.is(0, &["no answer"]);
}

/// The agent reads the claim when its client is dead already.
#[test]
fn what_a_process_asked_for_before_it_ended_is_free_at_once() {
    const ASKS: &str = r#"import os, socket, sys
agent = socket.socket(socket.AF_UNIX)
agent.connect(sys.argv[1])
agent.sendall(b'{"steps":2}\n')
lines = agent.makefile()
lines.readline(), lines.readline()
print("ready", flush=True)
input()
claim = '[1,{"try_acquire":{"key":"%s","owner":"%s","mode":"exclusive","ttl":{"secs":3600,"nanos":0},"waits":false}}]'
agent.sendall((claim % (sys.argv[2], "0123456789abcdef" * 2) + "\n").encode())
os._exit(0)"#;
    let (_server, place) = redis("");
    let agent = Agent::start(&place, "");
    let python = needs("python3", find("python3"));
    for key in ["a", "b", "c", "d", "e"] {
        let mut asks = Running::start(Command::new(&python).args(["-c", ASKS]).arg(agent.socket()).arg(key));
        asks.expect_line("ready");
        agent.signal(Signal::STOP);
        asks.type_in("\n");
        asks.end_by_itself().is(0, &[]);
        agent.signal(Signal::CONT);
        // Its lease goes on for an hour.
        assert_eq!(agent.place().code(&format!("run -w 60s {key} true")), 0);
    }
}

#[test]
fn what_a_program_holds_outlasts_an_agent_that_is_killed() {
    let (server, place) = redis("");
    let Agent { program, folder } = Agent::start(&place, "");
    let held_by = || place.inspect("k")["holders"][0]["token"].as_u64();
    let holder = at(&folder).hold_with("--ttl 15s", "k");
    let (token, lease_is_over) = (held_by(), Deadline::after(Duration::from_secs(20)));
    assert!(token.is_some());
    drop(program);
    // One before another store is of no use to it.
    let other = Place::at(format!("{}/1", server.url()));
    let another = Running::start(&mut agent(&other, &folder, ""));
    listens(&folder);
    assert_eq!(at(&folder).code("inspect -e k"), 1, "there the key is free");
    drop(another);
    let _second = Running::start(&mut agent(&place, &folder, ""));
    // Longer than the lease: it is renewed by way of the second agent, which releases it in the end.
    while !lease_is_over.is_over() {
        assert_eq!(held_by(), token);
    }
    holder.signal(Signal::KILL);
    // The second agent knows of the lease by its renewals.
    let killed = Deadline::after(Duration::from_secs(10));
    while held_by().is_some() {
        assert!(!killed.is_over(), "it is free at once, and not at the end of its lease");
    }
}

/// Before its next renewal, which comes after twenty minutes.
#[test]
fn what_a_program_holds_is_free_at_once_also_when_it_is_killed_soon_after_a_restart_of_the_agent() {
    let ((_server, place), rules) = (redis(""), tempfile::tempdir().unwrap());
    let options = policy(&rules, "* * keys=1", 0o600);
    for signal in [Signal::KILL, Signal::TERM] {
        let Agent { program, folder } = Agent::start(&place, &options);
        let holder = at(&folder).hold_with("--ttl 1h", "k");
        program.signal(signal);
        drop(program);
        let _next = Running::start(&mut agent(&place, &folder, &options));
        listens(&folder);
        eventually_some("the next agent knows of the lease", || {
            let answer = Connection::at(&folder).asking(&json!({"lock": "other"})).answer();
            answer["message"].as_str().filter(|why| why.contains("1 keys at most")).map(drop)
        });
        holder.signal(Signal::KILL);
        place.wait_until_free("k");
    }
}

#[test]
fn a_policy_and_its_limits_hold_for_programs_that_bring_their_own_engine() {
    let ((_server, place), folder) = (redis(""), tempfile::tempdir().unwrap());
    let agent = Agent::start(&place, &policy(&folder, "* tmp/ keys=1", 0o600));
    let place = agent.place();
    let holder = place.hold("tmp/k");
    for (args, code, why) in [
        ("run -n theirs true", 78, "the agent's policy does not allow the key \"theirs\""),
        ("run -n tmp/second true", 69, "a user holds or waits for 1 keys at most"),
        ("inspect theirs", 78, "does not allow the key \"theirs\""),
        ("list", 78, "does not allow all keys that begin with \"\"; list a prefix"),
        ("force-release theirs", 78, "does not allow the key \"theirs\""),
    ] {
        place.run(args).is(code, &[why]);
    }
    // A limit passes: who waits gets its turn.
    let waiter = place.start("run -w 60s tmp/second true");
    assert_eq!(place.code("list tmp/"), 0);
    drop(holder);
    waiter.end_by_itself().is(0, &[]);
}

#[test]
fn a_store_whose_locks_an_agent_cannot_pass_on_is_refused() {
    let (_server, reentrant) = redis("reentrant:");
    for (place, why) in [(Place::file(), "file has no leases"), (reentrant, "has sessions")] {
        Agent::start(&place, "").place().run("run -n k true").is(78, &[why]);
    }
}
