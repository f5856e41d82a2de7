//! A command on a terminal.

use std::fs::File;
use std::io::Write;
use std::process::Command;

use leasehold_testkit::terminal::OnTerminal;
use leasehold_testkit::{eventually_some, needs, test};

use crate::support::{Place, path, signals_as_usual};

/// A shell line on a terminal of its own.
pub(crate) fn on_a_terminal(place: &Place, line: &str) -> OnTerminal {
    signals_as_usual();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("PATH", path()).env("LEASEHOLD_BACKEND", place.backend());
    needs("setsid", OnTerminal::start(&shell, 100, 24))
}

#[test]
fn the_command_can_read_from_the_terminal_and_the_next_one_after_it() {
    let line = "leasehold run k -- sh -c 'echo ready; read a; echo got:$a'; read b; echo then:$b; read c";
    let place = Place::file();
    let mut terminal = on_a_terminal(&place, line);
    for (shows, typed) in [("ready", "one\n"), ("got:one", "two\n"), ("then:two", "\n")] {
        terminal.shows(shows);
        terminal.type_in(typed);
    }
}

#[test]
fn an_interrupt_from_the_keyboard_reaches_the_command_before_and_after_it_has_the_terminal() {
    let place = Place::file();
    for asks in ["", "read a; echo go;"] {
        // The shell that waits for the program must not die of the interrupt itself.
        let command = format!("trap \"exit 9\" INT; echo ready; {asks} while :; do sleep 0.05; done");
        let line = format!("trap : INT; leasehold run k -- sh -c '{command}'; echo code:$?; read b");
        let mut terminal = on_a_terminal(&place, &line);
        terminal.shows("ready");
        if !asks.is_empty() {
            terminal.type_in("one\n");
            terminal.shows("go");
        }
        terminal.type_in("\x03");
        terminal.shows("code:9");
    }
}

#[test]
fn the_line_about_waiting_is_drawn_on_a_terminal_and_taken_off_again() {
    let place = Place::file();
    let holder = place.hold_with("--label ada --reason nightly", "k");
    let terminal = on_a_terminal(&place, "leasehold run k -- echo ran; read a");
    terminal.shows("for k: held by ada (nightly)");
    holder.end();
    terminal.shows("ran");
    assert_eq!(terminal.text().trim(), "ran");
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
        let script =
            format!("set -m; leasehold run k -- sh -c '{command}'; echo stopped:$?; read a; fg; echo code:$?; read d");
        let mut terminal = on_a_terminal(&place, &script);
        if !asks.is_empty() {
            terminal.type_in("first\n");
        }
        let pid = terminal.until("the command's id", |screen| {
            let contents = screen.contents();
            let (pid, _) = contents.split_once("ready:")?.1.split_once('.')?;
            Some(pid.to_owned())
        });
        terminal.type_in("\x1a");
        terminal.shows("stopped:");
        eventually_some("the command is stopped, too", || (state(&pid) == "T").then_some(()));
        go.write_all(b"\n").unwrap();
        terminal.type_in("\none\n");
        terminal.shows("got:one");
        terminal.shows("code:0");
    }
}

/// What the kernel says that a process does.
fn state(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().and_then(|rest| rest.split(' ').next()).unwrap().to_owned()
}
