//! A command on a terminal, through `script(1)`, which makes one.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use leasehold_testkit::{eventually_some, needs, test};

use crate::support::{Place, Running};

/// A shell line on a terminal of its own, in which the program is called `leasehold`. `None`, and why, if there is
/// nothing to make a terminal with.
fn on_a_terminal(place: &Place, line: &str) -> Option<Running> {
    let line = line.replace("leasehold", env!("CARGO_BIN_EXE_leasehold"));
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("ignored: there is no script(1) to make a terminal with");
        return None;
    }
    let mut script = Command::new("script");
    script
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .env("LEASEHOLD_BACKEND", place.backend())
        .env("SHELL", "/bin/sh");
    Some(Running::start(&mut script))
}

#[test]
fn the_command_can_read_from_the_terminal_and_the_next_one_after_it() {
    let place = Place::file();
    let line = "leasehold run k -- sh -c 'echo ready; read a; echo got:$a'; read b; echo then:$b";
    let mut terminal = needs("terminal", on_a_terminal(&place, line));
    terminal.until("ready");
    terminal.type_in(b"one\n");
    terminal.until("got:one");
    terminal.type_in(b"two\n");
    terminal.until("then:two");
}

#[test]
fn an_interrupt_from_the_keyboard_reaches_the_command_before_and_after_it_has_the_terminal() {
    let place = Place::file();
    for asks in ["", "read a; echo go;"] {
        // The shell that waits for the program must not die of the interrupt itself.
        let command = format!("trap \"exit 9\" INT; echo ready; {asks} while :; do sleep 0.05; done");
        let line = format!("trap : INT; leasehold run k -- sh -c '{command}'; echo code:$?");
        let mut terminal = needs("terminal", on_a_terminal(&place, &line));
        terminal.until("ready");
        if !asks.is_empty() {
            terminal.type_in(b"one\n");
            terminal.until("go");
        }
        terminal.type_in(b"\x03");
        terminal.until("code:9");
    }
}

#[test]
fn the_line_about_waiting_is_drawn_on_a_terminal_and_taken_off_again() {
    let place = Place::file();
    let mut holder = place.hold_with(&["--label", "ada", "--reason", "nightly"], "k");
    let mut terminal = needs("terminal", on_a_terminal(&place, "leasehold run k -- echo ran"));
    terminal.until("for k: held by ada (nightly)");
    holder.close_input();
    let last = terminal.until("ran");
    assert!(last.ends_with("\r\x1b[Kran"), "{last:?}");
}

#[test]
fn the_keyboard_stops_and_the_shell_continues_program_and_command_before_and_after_it_has_the_terminal() {
    let place = Place::file();
    for asks in ["", "read a; "] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Open for both, so that neither side waits for the other to open it.
        let mut go = File::options().read(true).write(true).open(&pipe).unwrap();
        // At the moment of the key it must not ask for the terminal: the kernel drops a stop that comes in between
        // getting the terminal and being continued. Nor may it start a program: dash does that by vfork, and a stop in
        // the middle of it stops the new process alone, which dash waits for, so that no shell hears of it.
        let command = format!("{asks}echo ready:$$.; read c < {}; read b; echo got:$b", pipe.display());
        // A shell with job control, which is what people type into.
        let script = format!("set -m; leasehold run k -- sh -c '{command}'; echo stopped:$?; read a; fg; echo code:$?");
        let mut terminal = needs("terminal", on_a_terminal(&place, &script));
        if !asks.is_empty() {
            terminal.type_in(b"first\n");
        }
        terminal.until("ready:");
        let pid = terminal.until(".").trim_end_matches('.').to_owned();
        terminal.type_in(b"\x1a");
        terminal.until("stopped:");
        eventually_some("the command is stopped, too", || (state(&pid) == "T").then_some(()));
        go.write_all(b"\n").unwrap();
        terminal.type_in(b"\none\n");
        terminal.until("got:one");
        terminal.until("code:0");
    }
}

/// What the kernel says that a process does.
fn state(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().and_then(|rest| rest.split(' ').next()).unwrap().to_owned()
}
