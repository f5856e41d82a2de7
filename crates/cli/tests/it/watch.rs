//! The live table, on a terminal, and the lines of `watch --json`.

use std::process::{Command, Stdio};

use leasehold_testkit::terminal::{Cell, Color, OnTerminal, Screen};
use leasehold_testkit::{needs, test};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running, redis, text};
use crate::terminal::on_a_terminal;

const WIDE: (u16, u16) = (130, 20);

fn on_terminal(command: &Command, (columns, rows): (u16, u16)) -> OnTerminal {
    needs("setsid", OnTerminal::start(command, columns, rows))
}

/// `leasehold watch` with these arguments, when it has drawn its first table.
fn watch(place: &Place, args: &str, size: (u16, u16)) -> OnTerminal {
    let terminal = on_terminal(&place.leasehold(&format!("watch --interval 100ms {args}")), size);
    terminal.shows("q quit");
    terminal
}

fn quit(mut terminal: OnTerminal) {
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
}

/// The line of the screen with this text.
fn line(screen: &Screen, text: &str) -> Option<String> {
    screen.contents().lines().find(|line| line.contains(text)).map(str::to_owned)
}

#[test]
fn the_table_follows_what_is_held() {
    let place = Place::file();
    let terminal = watch(&place, "job/", WIDE);
    terminal.shows("prefix job/");
    terminal.shows("nothing is held");
    let ada = place.hold_with("--label ada@db1 --reason nightly", "job/a");
    let _readers = ["bob", "eve"].map(|label| place.hold_with(&format!("--shared --label {label}"), "job/b"));
    let _other = place.hold("other");
    terminal.shows("2 keys held");
    let of_ada = terminal.until("job/a", |screen| line(screen, "job/a"));
    for part in ["> job/a", "exclusive", " 1 ", "ada@db1", "nightly"] {
        assert!(of_ada.contains(part), "{part} is not in {of_ada}");
    }
    let of_readers = terminal.until("both readers", |screen| line(screen, "job/b").filter(|line| line.contains(" 2 ")));
    assert!(of_readers.contains("shared") && of_readers.contains("bob"), "who has held it longest: {of_readers}");
    assert!(!terminal.text().contains("other"), "{}", terminal.text());
    drop(ada);
    terminal.shows_no("job/a");
    terminal.shows("1 key held");
    quit(terminal);
}

#[test]
fn the_table_is_sorted_filtered_and_shows_details() {
    let place = Place::file();
    let long =
        "because the index of the invoices has to be built anew before the month ends, as every month; call 555 first";
    let _holders = [("b/one", "eve", long), ("b/two", "ada", "nightly"), ("a/three", "bob", "x")]
        .map(|(key, label, reason)| place.hold_with(&format!("--label {label} --reason '{reason}'"), key));
    let mut terminal = watch(&place, "", (90, 20));
    for (typed, shows, in_order) in [
        ("", "", "a/three b/one b/two"),
        ("r", "", "b/two b/one a/three"),
        ("4", "by label ▲", "b/two a/three b/one"),
        ("/xq\x15EVE", "1 of 3 keys", "/EVE"),
        ("\r\r", "held exclusively", "call 555 first"),
        ("\x1b", "Enter details", "b/one"),
        ("\x1b", "3 keys held", "b/two a/three b/one"),
        ("?", "sort the other way", ""),
        (" ", "Enter details", "b/two a/three b/one"),
    ] {
        terminal.type_in(typed);
        terminal.until(&format!("{shows} {in_order}"), |screen| {
            let contents = screen.contents();
            let words = if in_order.contains('/') { in_order.split(' ').collect() } else { vec![in_order] };
            let places: Option<Vec<_>> = words.into_iter().map(|word| contents.find(word)).collect();
            (places?.is_sorted() && contents.contains(shows)).then_some(())
        });
    }
    terminal.shows_no("sort the other way");
}

#[test]
fn a_grant_is_released_by_force_after_a_question_and_not_without() {
    let place = Place::file();
    let _ada = place.hold_with("--label ada@db1 --ttl 1h", "job/a");
    let mut terminal = watch(&place, "", WIDE);
    terminal.shows("ada@db1");
    let token = format!("token   {}", place.inspect("job/a")["holders"][0]["token"]);
    // Nothing was asked yet.
    terminal.type_in("y");
    for no in ["n", "N", "q", "\x1b"] {
        terminal.type_in("x");
        for shown in ["Release job/a by force?", "holder  ada@db1", &token] {
            terminal.shows(shown);
        }
        terminal.type_in(no);
        terminal.shows("nothing was released");
    }
    // A key that was typed too often is no answer.
    terminal.type_in("x\r\rx /\x1b[B");
    terminal.shows("Release job/a by force?");
    assert!(!place.is_free("job/a"));
    terminal.type_in("y");
    terminal.shows("released by force: job/a");
    terminal.shows("nothing is held");
    place.wait_until_free("job/a");
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
    // It is told again where it stays.
    terminal.until("the end", |screen| (!screen.alternate_screen()).then_some(()));
    terminal.shows("released by force: job/a was taken from ada@db1");
}

#[test]
fn another_grant_that_came_after_the_question_keeps_the_key() {
    let place = Place::file();
    let ada = place.hold_with("--label ada", "job/a");
    // It asks the store once, and does not learn of the other grant.
    let mut terminal = on_terminal(&place.leasehold("watch --interval 1h"), WIDE);
    terminal.shows("> job/a");
    terminal.type_in("x");
    terminal.shows("holder  ada");
    ada.end().is(0, &[]);
    let _bob = place.hold_with("--label bob", "job/a");
    terminal.type_in("y");
    terminal.shows("nothing was released: that grant has ended, and job/a is held by bob");
    place.run("inspect job/a").is(0, &["bob"]);
    quit(terminal);
}

/// A file cannot let one of several readers go.
#[test]
fn of_several_readers_the_chosen_one_is_released_where_the_store_can_and_the_others_keep_the_key() {
    let (_server, on_redis) = redis("redis-rw:");
    for (place, told, left) in [
        (on_redis, "released by force: k was taken from bob", &["ada", "eve"][..]),
        (Place::file(), "several readers hold its file", &["ada", "bob", "eve"]),
    ] {
        let _readers = ["ada", "bob", "eve"].map(|label| place.hold_with(&format!("--shared --label {label}"), "k"));
        let (mut terminal, keep_it) = (watch(&place, "", WIDE), format!("{} readers hold it", left.len()));
        terminal.until("three", |screen| line(screen, "shared").filter(|line| line.contains(" 3 ")));
        for (typed, shows) in [
            ("x", "choose one"),
            ("jx", "holder  bob"),
            ("", "2 other readers of the key keep it"),
            ("n", "nothing was released"),
            ("xy", told),
            ("", &keep_it),
        ] {
            terminal.type_in(typed);
            terminal.shows(shows);
        }
        let seen = place.inspect("k");
        let mut labels: Vec<_> = seen["holders"].as_array().unwrap().iter().map(|holder| &holder["label"]).collect();
        labels.sort_by_key(ToString::to_string);
        assert_eq!(labels, left);
    }
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted_and_the_words_are_the_same() {
    let place = Place::file();
    let _holder = place.hold_with("--label ada", "job/a");
    for (variable, value, args, coloured) in [
        ("LANG", "C", "", true),
        ("NO_COLOR", "1", "", false),
        ("TERM", "dumb", "", false),
        ("LANG", "C", "--color never", false),
        ("NO_COLOR", "1", "--color always", true),
    ] {
        let mut terminal = on_terminal(place.leasehold(&format!("watch {args}")).env(variable, value), WIDE);
        for (typed, shows) in [("", "> job/a"), ("\r", "held exclusively"), ("x", "by force?"), ("n\x1b?", "quit")] {
            terminal.type_in(typed);
            terminal.shows(shows);
            let screen = terminal.screen();
            let cells = (0..WIDE.1).flat_map(|row| (0..WIDE.0).map(move |column| (row, column)));
            let mut colours = cells.filter_map(|(row, column)| screen.cell(row, column).map(Cell::fgcolor));
            assert_eq!(colours.any(|colour| colour != Color::Default), coloured, "{variable}={value} {args} {shows}");
        }
    }
}

#[test]
fn the_terminal_is_as_it_was_after_every_end() {
    let place = Place::file();
    for (typed, signal, code) in [
        ("q", None, 0),
        ("\x03", None, 0),
        ("/abc\x03", None, 0),
        ("", Some(Signal::TERM), 143),
        ("", Some(Signal::INT), 130),
    ] {
        let before = on_terminal(Command::new("sleep").arg("600"), WIDE).settings();
        let mut terminal = watch(&place, "", WIDE);
        let screen = terminal.screen();
        assert!(screen.alternate_screen() && screen.hide_cursor());
        assert_ne!(terminal.settings(), before, "it has changed something that it has to change back");
        terminal.type_in(typed);
        if let Some(signal) = signal {
            terminal.signal(signal);
        }
        assert_eq!(terminal.end().code(), Some(code));
        let is_back = |screen: &Screen| !screen.alternate_screen() && !screen.hide_cursor();
        terminal.until("the terminal is back", |screen| is_back(screen).then_some(()));
        assert_eq!(terminal.settings(), before);
        assert_eq!(terminal.text().trim(), "", "nothing is left on the screen");
    }
}

#[test]
fn it_stops_for_the_shell_and_goes_on() {
    let place = Place::file();
    let _holder = place.hold("job/a");
    let job = "set -m; leasehold watch; echo stopped:$?; read a; fg; echo code:$?; read b";
    let mut terminal = on_a_terminal(&place, job);
    terminal.shows("job/a");
    terminal.type_in("\x1a");
    terminal.shows("stopped:");
    let screen = terminal.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
    terminal.type_in("\n");
    terminal
        .until("the table", |screen| (screen.alternate_screen() && line(screen, "> job/a").is_some()).then_some(()));
    terminal.type_in("q");
    terminal.shows("code:0");
}

#[test]
fn thousands_of_keys_are_paged_and_only_the_screen_is_drawn() {
    use leasehold::LockerExt;

    let place = Place::file();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _guards = runtime.block_on(async {
        let locks = leasehold::connect(place.backend()).await.unwrap();
        let mut guards = Vec::new();
        for n in 0..2500 {
            guards.push(locks.lock(&format!("key/{n:04}")).await.unwrap());
        }
        guards
    });
    let mut terminal = watch(&place, "", (80, 24));
    terminal.shows("2500 keys held");
    terminal.shows("> key/0000");
    terminal.type_in("\x1b[F");
    terminal.shows("> key/2499");
    assert!(!terminal.text().contains("key/0000"));
    terminal.type_in("/1234");
    terminal.shows("1 of 2500 keys");
    terminal.shows("> key/1234");
}

/// `watch --json`.
struct Lines(Running);

impl Lines {
    fn start(place: &Place, prefix: &str) -> Self {
        Self(place.start(&format!("watch --json --interval 100ms {prefix}")))
    }

    /// The next line has this event, of this key.
    #[track_caller]
    fn is(&mut self, event: &str, key: &str) -> Value {
        let line: Value = serde_json::from_str(&self.0.line()).unwrap();
        assert!(line["time_ms"].as_u64().is_some_and(|millis| millis > 1_700_000_000_000), "since 1970: {line}");
        assert!(line["event"] == event && line["key"].as_str().unwrap_or_default() == key, "no {event} {key}: {line}");
        line
    }
}

#[test]
fn it_ends_quietly_when_nobody_reads_it_although_nothing_changes() {
    let place = Place::file();
    let _holder = place.hold("k");
    let mut program = place.leasehold("watch --json --interval 100ms");
    let mut program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = Command::new("head").args(["-n", "1"]).stdin(program.stdout.take().unwrap()).output().unwrap();
    assert!(text(&first.stdout).contains("held"));
    let ended = program.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), text(&ended.stderr).as_str()), (Some(0), ""));
}

#[test]
fn table_and_lines_tell_of_each_change_and_of_a_redis_that_goes_away_and_go_on_when_it_is_back() {
    let (mut server, place) = redis("");
    let first = place.hold_with("--label ada --ttl 1h", "job/a");
    let _other = place.hold("other");
    let terminal = watch(&place, "", (150, 20));
    let mut lines = Lines::start(&place, "job/");
    terminal.shows("job/a");
    terminal.until("a lease", |screen| screen.contents().contains("59 m").then_some(()));
    let held = lines.is("held", "job/a");
    let holder = &held["holders"][0];
    assert!(holder["label"] == "ada" && holder["mode"] == "exclusive" && held["waiters"] == 0, "{held}");
    assert!(holder["token"].as_u64().unwrap() > 0, "{held}");
    assert_eq!(lines.is("listed", "")["keys"], 1);
    server.kill();
    terminal.shows("OLD: no answer for");
    terminal.shows("job/a");
    assert!(!lines.is("unanswered", "")["message"].as_str().unwrap().is_empty());
    first.signal(Signal::KILL);
    drop(first);
    server.restart_blocking();
    terminal.shows_no("OLD");
    terminal.shows("nothing is held");
    lines.is("free", "job/a");
    lines.is("listed", "");
    let _second = place.hold_with("--label bob", "job/b");
    terminal.shows("bob");
    lines.is("held", "job/b");
    quit(terminal);
    lines.0.signal(Signal::TERM);
    assert_eq!(lines.0.end_by_itself().is(143, &[]).errors, "");
}

#[test]
fn without_a_terminal_or_a_store_it_says_so() {
    Place::file().run("watch").is(64, &["--json"]);
    assert_eq!(Place::at("redis://127.0.0.1:1").code("watch --json"), 69);
}
