//! The live table, on a terminal.

use std::process::Command;

use leasehold_testkit::terminal::{Cell, Color, OnTerminal, Screen};
use leasehold_testkit::{needs, test};
use rustix::process::Signal;

use crate::support::{Place, Running, text};

const WIDE: (u16, u16) = (130, 20);

/// What a person or a supervisor does to end the program.
type End<'a> = &'a dyn Fn(&mut OnTerminal);

fn on_terminal(command: &Command, (columns, rows): (u16, u16)) -> OnTerminal {
    needs("setsid", OnTerminal::start(command, columns, rows))
}

/// `leasehold watch` with these arguments, when it has drawn its first table.
pub(crate) fn watch(place: &Place, args: &[&str], size: (u16, u16)) -> OnTerminal {
    let args = [&["watch", "--interval", "100ms"], args].concat();
    let terminal = on_terminal(&place.leasehold(&args), size);
    terminal.shows("q quit");
    terminal
}

/// The line of the screen with this text.
fn line(screen: &Screen, text: &str) -> Option<String> {
    screen.contents().lines().find(|line| line.contains(text)).map(str::to_owned)
}

#[test]
fn the_table_follows_what_is_held() {
    let place = Place::file();
    let mut terminal = watch(&place, &["job/"], WIDE);
    terminal.shows("nothing is held");
    let ada = place.hold_with(&["--label", "ada@db1", "--reason", "nightly"], "job/a");
    let readers = ["bob", "eve"].map(|label| place.hold_with(&["--shared", "--label", label], "job/b"));
    let other = place.hold("other");
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
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
    drop((readers, other));
}

#[test]
fn the_table_is_sorted_filtered_and_shows_details() {
    let place = Place::file();
    let long =
        "because the index of the invoices has to be built anew before the month ends, as every month; call 555 first";
    let _holders = [("b/one", "eve", long), ("b/two", "ada", "nightly"), ("a/three", "bob", "x")]
        .map(|(key, label, reason)| place.hold_with(&["--label", label, "--reason", reason], key));
    let mut terminal = watch(&place, &[], (90, 20));
    let in_order = |terminal: &OnTerminal, keys: [&str; 3]| {
        terminal.until(&format!("{keys:?}"), |screen| {
            let contents = screen.contents();
            let places: Option<Vec<_>> = keys.iter().map(|key| contents.find(key)).collect();
            places?.is_sorted().then_some(())
        });
    };
    in_order(&terminal, ["a/three", "b/one", "b/two"]);
    terminal.type_in("r");
    in_order(&terminal, ["b/two", "b/one", "a/three"]);
    terminal.type_in("4");
    terminal.shows("by label ▲");
    in_order(&terminal, ["b/two", "a/three", "b/one"]);
    terminal.type_in("/EVE");
    terminal.shows("/EVE");
    terminal.shows("1 of 3 keys");
    terminal.shows_no("a/three");
    terminal.type_in("\r\r");
    terminal.shows("held exclusively");
    terminal.shows("call 555 first");
    terminal.type_in("\x1b");
    terminal.shows_no("held exclusively");
    terminal.type_in("\x1b");
    in_order(&terminal, ["b/two", "a/three", "b/one"]);
    terminal.type_in("?");
    terminal.shows("sort the other way");
    terminal.type_in(" ");
    terminal.shows_no("sort the other way");
}

#[test]
fn a_grant_is_released_by_force_after_a_question_and_not_without() {
    let place = Place::file();
    let ada = place.hold_with(&["--label", "ada@db1", "--ttl", "1h"], "job/a");
    let mut terminal = watch(&place, &[], WIDE);
    terminal.shows("ada@db1");
    let token = text(&place.run(&["inspect", "--json", "job/a"]).stdout);
    let token: serde_json::Value = serde_json::from_str(&token).unwrap();
    let token = token["holders"][0]["token"].to_string();
    for no in ["n", "\x1b"] {
        terminal.type_in("x");
        terminal.shows("Release job/a by force?");
        terminal.shows("holder  ada@db1");
        terminal.shows(&format!("token   {token}"));
        terminal.type_in(no);
        terminal.shows("nothing was released");
    }
    // A key that was typed too often is no answer.
    terminal.type_in("x\r\r ");
    terminal.shows("Release job/a by force?");
    assert_eq!(place.code(&["inspect", "-e", "job/a"]), 0, "it is held");
    terminal.type_in("y");
    terminal.shows("released by force: job/a");
    terminal.shows("nothing is held");
    place.wait_until_free("job/a");
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
    // It is told again where it stays.
    terminal.until("the end", |screen| (!screen.alternate_screen()).then_some(()));
    terminal.shows("released by force: job/a was taken from ada@db1");
    drop(ada);
}

#[test]
fn another_grant_that_came_after_the_question_keeps_the_key() {
    let place = Place::file();
    let ada = place.hold_with(&["--label", "ada"], "job/a");
    // It asks the store once, and does not learn of the other grant.
    let mut terminal = on_terminal(&place.leasehold(&["watch", "--interval", "1h"]), WIDE);
    terminal.shows("> job/a");
    terminal.type_in("x");
    terminal.shows("holder  ada");
    assert_eq!(ada.end().code, Some(0));
    let _bob = place.hold_with(&["--label", "bob"], "job/a");
    terminal.type_in("y");
    terminal.shows("nothing was released: that grant has ended, and job/a is held by bob");
    let seen = text(&place.run(&["inspect", "job/a"]).stdout);
    assert!(seen.contains("bob"), "{seen}");
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
}

/// Three readers of `k`, the second of them chosen, and the question whether it shall be released.
fn one_of_three_readers(place: &Place) -> ([Running; 3], OnTerminal) {
    let readers = ["ada", "bob", "eve"].map(|label| place.hold_with(&["--shared", "--label", label], "k"));
    let mut terminal = watch(place, &[], WIDE);
    terminal.until("three", |screen| line(screen, "shared").filter(|line| line.contains(" 3 ")));
    terminal.type_in("x");
    terminal.shows("choose one");
    terminal.type_in("jx");
    terminal.shows("holder  bob");
    terminal.shows("2 other readers of the key keep it");
    (readers, terminal)
}

/// Who holds `k`.
fn labels(place: &Place) -> Vec<String> {
    let seen: serde_json::Value = serde_json::from_slice(&place.run(&["inspect", "--json", "k"]).stdout).unwrap();
    let holders = seen["holders"].as_array().unwrap().iter();
    let mut labels: Vec<_> = holders.map(|holder| holder["label"].as_str().unwrap().to_owned()).collect();
    labels.sort();
    labels
}

#[cfg(feature = "redis")]
#[test]
fn of_several_readers_the_chosen_one_is_released_and_the_others_keep_the_key() {
    let server = needs("redis-server", leasehold_testkit::redis::Server::start_blocking(&[]));
    let place = Place::at(format!("redis-rw://127.0.0.1:{}/0", server.port()));
    let (_readers, mut terminal) = one_of_three_readers(&place);
    terminal.type_in("n");
    terminal.shows("nothing was released");
    assert_eq!(labels(&place), ["ada", "bob", "eve"]);
    terminal.type_in("xy");
    terminal.shows("released by force: k was taken from bob");
    terminal.shows("2 readers hold it");
    assert_eq!(labels(&place), ["ada", "eve"]);
}

#[test]
fn a_store_that_cannot_release_one_reader_alone_says_so_and_all_keep_the_key() {
    let place = Place::file();
    let (_readers, mut terminal) = one_of_three_readers(&place);
    terminal.type_in("y");
    terminal.shows("several readers hold its file");
    assert_eq!(labels(&place), ["ada", "bob", "eve"]);
    terminal.shows("3 readers hold it");
}

#[test]
fn it_is_drawn_in_whatever_size_the_terminal_has() {
    let place = Place::file();
    let _holder = place.hold_with(&["--label", "ada@db1", "--reason", "nightly"], "job/a");
    let mut terminal = watch(&place, &[], WIDE);
    terminal.shows("nightly");
    for (columns, rows) in [(40, 5), (10, 3), (3, 2), (1, 1), (200, 60), (2, 40), (80, 1)] {
        terminal.resize(columns, rows);
        // It is drawn again in any size, and answers keys.
        terminal.type_in("?");
        terminal.type_in(" ");
    }
    terminal.resize(60, 10);
    terminal.shows("ada@db1");
    terminal.resize(130, 20);
    let whole = terminal.until("all columns", |screen| line(screen, "job/a").filter(|line| line.contains("nightly")));
    assert!(whole.contains("exclusive"), "{whole}");
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted_and_the_words_are_the_same() {
    let place = Place::file();
    let _holder = place.hold_with(&["--label", "ada"], "job/a");
    let coloured = |environment: &[(&str, &str)], args: &[&str]| {
        let mut command = place.leasehold(&[&["watch"], args].concat());
        command.envs(environment.iter().copied());
        let terminal = on_terminal(&command, WIDE);
        let line = terminal.until("the key", |screen| line(screen, "job/a"));
        assert!(line.starts_with("> job/a") && line.contains("exclusive"), "{line}");
        let screen = terminal.screen();
        let cells = (0..WIDE.1).flat_map(|row| (0..WIDE.0).map(move |column| (row, column)));
        let mut colours = cells.filter_map(|(row, column)| screen.cell(row, column).map(Cell::fgcolor));
        colours.any(|colour| colour != Color::Default)
    };
    assert!(coloured(&[], &[]));
    assert!(!coloured(&[("NO_COLOR", "1")], &[]));
    assert!(!coloured(&[("TERM", "dumb")], &[]));
    assert!(!coloured(&[], &["--color", "never"]));
    assert!(coloured(&[("NO_COLOR", "1")], &["--color", "always"]));
}

#[test]
fn the_terminal_is_as_it_was_after_every_end() {
    let place = Place::file();
    let by_key = |keys: &'static str| move |terminal: &mut OnTerminal| terminal.type_in(keys);
    let by_signal = |signal: Signal| move |terminal: &mut OnTerminal| terminal.signal(signal);
    let ends: [(End<'_>, i32); 5] = [
        (&by_key("q"), 0),
        (&by_key("\x03"), 0),
        (&by_key("/abc\x03"), 0),
        (&by_signal(Signal::TERM), 143),
        (&by_signal(Signal::INT), 130),
    ];
    for (end, code) in ends {
        let terminal = on_terminal(Command::new("sleep").arg("600"), WIDE);
        let before = terminal.settings();
        let mut terminal = watch(&place, &[], WIDE);
        let screen = terminal.screen();
        assert!(screen.alternate_screen() && screen.hide_cursor());
        assert_ne!(terminal.settings(), before, "it has changed something that it has to change back");
        end(&mut terminal);
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
    let program = env!("CARGO_BIN_EXE_leasehold");
    let script = format!("set -m; {program} watch; echo stopped:$?; read a; fg; echo code:$?; read b");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("LEASEHOLD_BACKEND", place.backend());
    let mut terminal = on_terminal(&command, WIDE);
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
fn keys_and_labels_cannot_play_with_the_terminal() {
    let place = Place::file();
    let hostile = ["\u{1b}[2J\u{1b}]0;title\u{7}", "鍵鍵鍵", "e\u{301}\u{200b}\u{202e}x", "two\nlines", "\u{9b}31m"];
    let _holders = hostile.map(|text| place.hold_with(&["--label", text, "--reason", text], &format!("k {text}")));
    let mut terminal = watch(&place, &[], (200, 20));
    terminal.shows("5 keys held");
    let screen = terminal.screen();
    for spelt in [r"\u{1b}[2J", r"two\nlines", r"\u{202e}x", "鍵鍵鍵", r"\u{9b}31m"] {
        assert!(screen.contents().contains(spelt), "{spelt} is not in {}", screen.contents());
    }
    // The rows line up: the mode begins in the same column of all of them.
    let column_of = |row: u16| {
        (0..200).find(|column| {
            let word: String = (0..9).filter_map(|at| screen.cell(row, column + at)).map(Cell::contents).collect();
            word == "exclusive"
        })
    };
    let columns: Vec<_> = (2..7).map(column_of).collect();
    assert!(columns[0].is_some() && columns.iter().all(|column| *column == columns[0]), "{columns:?}");
    terminal.type_in("q");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn thousands_of_keys_are_paged_and_only_the_screen_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::at(format!("file:{}", dir.path().join("locks").display()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guards = runtime.block_on(async {
        use leasehold::LockerExt;
        let locks = leasehold::connect(place.backend()).await.unwrap();
        let mut guards = Vec::new();
        for n in 0..2500 {
            guards.push(locks.lock(&format!("key/{n:04}")).await.unwrap());
        }
        guards
    });
    let mut terminal = watch(&place, &[], (80, 24));
    terminal.shows("2500 keys held");
    terminal.shows("> key/0000");
    terminal.type_in("\x1b[F");
    terminal.shows("> key/2499");
    assert!(!terminal.text().contains("key/0000"));
    terminal.type_in("/1234");
    terminal.shows("1 of 2500 keys");
    terminal.shows("> key/1234");
    drop(guards);
    runtime.shutdown_background();
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let ended = Place::file().run(&["watch"]);
    assert_eq!(ended.status.code(), Some(64));
    assert!(text(&ended.stderr).contains("--json"), "{ended:?}");
    for wrong in
        [&["watch", "--interval", "1ms"][..], &["watch", "--interval", "x"], &["watch", "--json", "--color", "never"]]
    {
        assert_eq!(Place::file().code(wrong), 64, "{wrong:?}");
    }
}
