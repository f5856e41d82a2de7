//! The clients of `docs/clients`, in Python, Node and the shell, on a real Redis: by `hold`, and by an agent. Without the language a
//! test is ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold_testkit::launch::find;
use leasehold_testkit::{needs, test};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent::{Agent, policy};
use crate::hold::Client;
use crate::support::{Place, Running, ended, path, redis};

/// Runs `leasehold hold`, and writes down which process that is.
const HOLD: &str = r#"echo $$ >"$1"; exec "$0" hold"#;

/// Does what a line of its input says, and tells what came of it.
const PYTHON: &str = "
import json, sys
sys.path.insert(0, sys.argv[1])
import leasehold
agent, command = sys.argv[2] or None, sys.argv[3:]
for line in sys.stdin:
    word, _, request = line.strip().partition(' ')
    if word == 'lock':
        try:
            lock = leasehold.Lock(agent=agent, command=command, label='own', **json.loads(request)).acquire()
            told = [lock.token, lock.tokens, lock.is_held()]
        except leasehold.Refused as refused:
            told = refused.answer
    elif word == 'lost':
        lock.lost.wait()
        told = [lock.reason, lock.is_held()]
    else:
        if word == 'release': lock.release()
        told = [lock.is_held(), lock.lost.is_set()]
    print(json.dumps(told), flush=True)
";

/// The same.
const NODE: &str = "
import { once } from 'node:events';
import { createInterface } from 'node:readline';
const [folder, agent, ...command] = process.argv.slice(2);
const { acquire } = await import(folder + '/leasehold.mjs');
let lock, reason, told;
for await (const line of createInterface({ input: process.stdin })) {
  const [word, request] = line.split(/ (.*)/);
  if (word === 'lock') {
    try {
      lock = await acquire({ label: 'own', ...JSON.parse(request) }, agent ? { agent } : { command });
      reason = undefined;
      lock.on('lost', (why) => (reason = why));
      told = [lock.token, lock.tokens, lock.isHeld()];
    } catch (refused) {
      told = refused.answer;
    }
  } else if (word === 'lost') {
    told = [reason ?? (await once(lock, 'lost'))[0], lock.isHeld()];
  } else {
    if (word === 'release') await lock.release();
    told = [lock.isHeld(), reason !== undefined];
  }
  console.log(JSON.stringify(told));
}
process.exit();
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

/// The program in one of the two languages, with the clients in its first argument.
fn program(language: &str) -> Command {
    let mut program = Command::new(needs(language, find(language)));
    match language {
        "node" => program.args(["--input-type=module", "-e", NODE, "node"]),
        _ => program.args(["-c", PYTHON]),
    };
    program.arg(clients()).env("PYTHONDONTWRITEBYTECODE", "1");
    program
}

/// What came of a line of its input.
#[track_caller]
fn does(program: &mut Running, line: &str) -> Value {
    program.says(line);
    program.told()
}

/// Follows a program that takes part by `hold`, or by an agent.
#[track_caller]
fn takes_part(language: &str, by_agent: bool) {
    let (_server, place) = redis("");
    let agent = by_agent.then(|| Agent::start(&place, ""));
    let folder = tempfile::tempdir().unwrap();
    let hold_is = folder.path().join("hold");
    let socket = agent.as_ref().map(Agent::socket).unwrap_or_default();
    let mut program = program(language);
    program.arg(socket).args(["sh", "-c", HOLD, env!("CARGO_BIN_EXE_leasehold")]).arg(&hold_is);

    let holder = place.hold("k");
    let mut program = Running::start(program.env("LEASEHOLD_BACKEND", place.backend()));
    program.says(r#"lock {"lock":"k","wait_ms":60000,"deadman_ms":2000,"ttl_ms":3000}"#);
    holder.end().is(0, &[]);
    let held = program.told();
    assert!(held[0].is_u64() && held[1]["k"] == held[0] && held[2] == true, "{held}");
    let busy = does(&mut program, r#"lock {"lock":"k","wait_ms":0}"#);
    let label = busy["busy"]["holders"][0]["label"].as_str().unwrap();
    assert!(label == "own" || label.ends_with(" (own)"), "{label}");
    // For longer than the lease, and than the client may be silent.
    assert_eq!(place.code("run -w 4s k true"), 75);
    assert_eq!(does(&mut program, "look"), json!([true, false]));
    assert_eq!(does(&mut program, "release"), json!([false, false]));
    assert!(place.is_free("k"));

    does(&mut program, r#"lock {"lock":"l","ttl_ms":3000}"#);
    assert_eq!(place.code("force-release l"), 0);
    assert_eq!(does(&mut program, "lost"), json!(["force_released", false]));
    assert_eq!(does(&mut program, "release"), json!([false, true]));

    does(&mut program, r#"lock {"lock":"m","ttl_ms":3000}"#);
    if let Some(agent) = agent {
        agent.signal(Signal::KILL);
    } else {
        let pid = fs::read_to_string(&hold_is).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    assert_eq!(does(&mut program, "lost"), json!(["unreachable", false]));
    program.end().is(0, &[]);
}

#[test]
fn python_takes_part_by_hold() {
    takes_part("python3", false);
}

#[test]
fn python_takes_part_by_an_agent() {
    takes_part("python3", true);
}

#[test]
fn node_takes_part_by_hold() {
    takes_part("node", false);
}

#[test]
fn node_takes_part_by_an_agent() {
    takes_part("node", true);
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

/// Whoever is refused at the door hears why, and whoever releases does not wait for an agent that is stopped.
#[test]
fn a_client_is_told_why_it_is_refused_and_releases_at_an_agent_that_is_stopped() {
    for language in ["python3", "node"] {
        let (place, folder) = (Place::file(), tempfile::tempdir().unwrap());
        let agent = Agent::start(&place, &policy(&folder, "* * connections=1", 0o600));
        let mut program = Running::start(program(language).arg(agent.socket()));
        does(&mut program, r#"lock {"lock":"k"}"#);
        for _ in 0..20 {
            assert_eq!(does(&mut program, r#"lock {"lock":"l"}"#)["error"], "refused");
        }
        agent.signal(Signal::STOP);
        assert_eq!(does(&mut program, "release"), json!([false, false]));
        program.end().is(0, &[]);
        agent.signal(Signal::CONT);
        place.wait_until_free("k");
    }
}
