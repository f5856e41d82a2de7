//! The clients of `docs/clients`, in Python, Node and the shell, on a real Redis: by `hold`, and by an agent. Without the language a
//! test is ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold_testkit::launch::find;
use leasehold_testkit::{needs, test};
use rustix::process::{Pid, Signal, kill_process};

use crate::agent::{Agent, policy};
use crate::support::{Place, Running, ended, path, redis};

/// Runs `leasehold hold`, and writes down which process that is.
const HOLD: &str = r#"echo $$ >"$1"; exec "$0" hold"#;

const PYTHON: &str = "
import sys
sys.path.insert(0, sys.argv[1])
import leasehold
agent, command = sys.argv[2] or None, sys.argv[3:]
def lock(key, **request):
    return leasehold.Lock(key, agent=agent, command=command, label='own', **request)
with lock('k', wait_ms=60000, deadman_ms=2000, ttl_ms=3000) as held:
    print('held', held.token, held.tokens['k'] == held.token and held.is_held(), flush=True)
    try:
        lock('k', wait_ms=0).acquire()
    except leasehold.Refused as refused:
        print('busy', refused.answer['busy']['holders'][0]['label'], flush=True)
    sys.stdin.readline()
    print('still', held.is_held(), flush=True)
print('released', held.is_held(), held.lost.is_set(), flush=True)
for key in 'lm':
    lost = lock(key, ttl_ms=3000)
    lost.acquire()
    print('held', key, flush=True)
    lost.lost.wait()
    print('lost', lost.reason, lost.is_held(), flush=True)
    if key == 'l':
        lost.release()
";

const NODE: &str = "
import { createInterface } from 'node:readline';
const [folder, agent, ...command] = process.argv.slice(2);
const { acquire, Refused } = await import(folder + '/leasehold.mjs');
const lock = (request) => acquire({ label: 'own', ...request }, agent ? { agent } : { command });
const input = createInterface(process.stdin)[Symbol.asyncIterator]();
const word = (is) => (is ? 'True' : 'False');
const held = await lock({ lock: 'k', wait_ms: 60000, deadman_ms: 2000, ttl_ms: 3000 });
let lost = false;
held.on('lost', () => (lost = true));
console.log('held', held.token, word(held.tokens.k === held.token && held.isHeld()));
await lock({ lock: 'k', wait_ms: 0 }).catch((refused) => {
  if (refused instanceof Refused) console.log('busy', refused.answer.busy.holders[0].label);
});
await input.next();
console.log('still', word(held.isHeld()));
await held.release();
console.log('released', word(held.isHeld()), word(lost));
for (const key of 'lm') {
  const losing = await lock({ lock: key, ttl_ms: 3000 });
  console.log('held', key);
  const alive = setInterval(() => {}, 1000);
  const reason = await new Promise((done) => losing.on('lost', done));
  clearInterval(alive);
  console.log('lost', reason, word(losing.isHeld()));
}
process.exit(0);
";

const SHELL: &str = r#"
. "$1/leasehold.sh"
trap 'echo lost; exit 3' TERM
lock k -w 60s --label own || exit
echo "held $LOCK_TOKEN"
read -r line
unlock
echo "released $?"
lock busy -n
echo "busy $?"
lock l --ttl 3s || exit
echo "held l"
while :; do sleep 0.05; done
"#;

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients").canonicalize().unwrap()
}

/// A program in one of the two languages, with the clients in its first argument.
fn program(language: &str, text: &str) -> Command {
    let mut program = Command::new(needs(language, find(language)));
    match language {
        "node" => program.args(["--input-type=module", "-e", text, "node"]),
        _ => program.args(["-c", text]),
    };
    program.arg(clients()).env("PYTHONDONTWRITEBYTECODE", "1");
    program
}

/// Follows a program that takes part by `hold`, or by an agent.
#[track_caller]
fn takes_part(program: &mut Command, by_agent: bool) {
    let (_server, place) = redis("");
    let agent = by_agent.then(|| Agent::start(&place, ""));
    let folder = tempfile::tempdir().unwrap();
    let hold_is = folder.path().join("hold");
    let socket = agent.as_ref().map(Agent::socket).unwrap_or_default();
    program.arg(socket).args(["sh", "-c", HOLD, env!("CARGO_BIN_EXE_leasehold")]).arg(&hold_is);

    let holder = place.hold("k");
    let mut program = Running::start(program.env("LEASEHOLD_BACKEND", place.backend()));
    holder.end().is(0, &[]);
    let held = program.line();
    let token = held.strip_prefix("held ").and_then(|held| held.strip_suffix(" True"));
    assert!(token.is_some_and(|token| token.parse::<u64>().is_ok()), "{held}");
    let busy = program.line();
    assert!(busy.starts_with("busy ") && (busy.ends_with(" own") || busy.ends_with(" (own)")), "{busy}");
    // For longer than the lease, and than the client may be silent.
    assert_eq!(place.code("run -w 4s k true"), 75);
    program.type_in("\n");
    program.expect_line("still True");
    program.expect_line("released False False");
    assert!(place.is_free("k"));

    program.expect_line("held l");
    assert_eq!(place.code("force-release l"), 0);
    program.expect_line("lost force_released False");

    program.expect_line("held m");
    if let Some(agent) = agent {
        agent.signal(Signal::KILL);
    } else {
        let pid = fs::read_to_string(&hold_is).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    program.expect_line("lost unreachable False");
    program.end().is(0, &[]);
}

#[test]
fn python_takes_part_by_hold() {
    takes_part(&mut program("python3", PYTHON), false);
}

#[test]
fn python_takes_part_by_an_agent() {
    takes_part(&mut program("python3", PYTHON), true);
}

#[test]
fn node_takes_part_by_hold() {
    takes_part(&mut program("node", NODE), false);
}

#[test]
fn node_takes_part_by_an_agent() {
    takes_part(&mut program("node", NODE), true);
}

/// A script of a shell, which finds the client at `$1` and the program in its path.
fn script(shell: &str, text: &str, place: &Place) -> Command {
    let mut script = Command::new(shell);
    script.args(["-c", text, shell]).arg(clients()).env("PATH", path()).env("LEASEHOLD_BACKEND", place.backend());
    script
}

#[test]
fn scripts_take_part_by_hold() {
    let (_server, place) = redis("");
    let _busy = place.hold("busy");
    for shell in ["sh", "bash"].into_iter().filter(|shell| find(shell).is_some()) {
        let holder = place.hold("k");
        let mut script = Running::start(&mut script(shell, SHELL, &place));
        holder.end().is(0, &[]);
        let held = script.line();
        assert!(held.strip_prefix("held ").is_some_and(|token| token.parse::<u64>().is_ok()), "{shell}: {held}");
        assert!(!place.is_free("k"), "{shell}");
        script.type_in("\n");
        script.expect_line("released 0");
        assert!(place.is_free("k"), "{shell}");
        script.expect_line("busy 75");
        script.expect_line("held l");
        assert_eq!(place.code("force-release l"), 0);
        script.expect_line("lost");
        script.end().is(3, &[]);
    }
}

#[test]
fn a_script_that_is_killed_releases_and_one_that_ends_before_its_children_sends_no_signal_to_the_number_it_had() {
    let place = Place::file();
    let text = r#". "$1/leasehold.sh"; lock k; echo held; read -r line"#;
    let mut killed = Running::start(&mut script("sh", text, &place));
    killed.expect_line("held");
    killed.signal(Signal::KILL);
    place.wait_until_free("k");
    // The outer one reaps the inner one: a signal would still reach a process that has ended and that nobody has waited for.
    let text = r#"sh -c '. "$1/leasehold.sh"; lock k || exit; sleep 1 & exit 0' sh "$1"; true"#;
    // Until the last of them has ended, because they have its standard error: a signal that misses is told there.
    assert_eq!(ended(&mut script("sh", text, &place)).is(0, &[]).errors, "");
}

const REFUSED_IN_PYTHON: &str = "
import sys
sys.path.insert(0, sys.argv[1])
import leasehold
held = leasehold.Lock('k', agent=sys.argv[2]).acquire()
told = set()
for _ in range(20):
    try:
        leasehold.Lock('l', agent=sys.argv[2]).acquire()
    except leasehold.Refused as refused:
        told.add(refused.answer['error'])
print(*told, flush=True)
sys.stdin.readline()
held.release()
print('released', flush=True)
";

const REFUSED_IN_NODE: &str = "
import { createInterface } from 'node:readline';
const [folder, agent] = process.argv.slice(2);
const { acquire } = await import(folder + '/leasehold.mjs');
const held = await acquire({ lock: 'k' }, { agent });
const told = new Set();
for (let i = 0; i < 20; i++) await acquire({ lock: 'l' }, { agent }).catch((refused) => told.add(refused.answer.error));
console.log(...told);
await createInterface(process.stdin)[Symbol.asyncIterator]().next();
await held.release();
console.log('released');
process.exit();
";

/// Whoever is refused at the door hears why, and whoever releases does not wait for an agent that is stopped.
#[test]
fn a_client_is_told_why_it_is_refused_and_releases_at_an_agent_that_is_stopped() {
    for (language, text) in [("python3", REFUSED_IN_PYTHON), ("node", REFUSED_IN_NODE)] {
        let (place, folder) = (Place::file(), tempfile::tempdir().unwrap());
        let agent = Agent::start(&place, &policy(&folder, "* * connections=1", 0o600));
        let mut program = Running::start(program(language, text).arg(agent.socket()));
        program.expect_line("refused");
        agent.signal(Signal::STOP);
        program.type_in("\n");
        program.expect_line("released");
        program.end().is(0, &[]);
        agent.signal(Signal::CONT);
        place.wait_until_free("k");
    }
}
