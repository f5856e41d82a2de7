//! The pictures of the README are what the program shows.

use std::path::Path;

use leasehold_testkit::redis::Server;
use leasehold_testkit::terminal::Screen;
use leasehold_testkit::{eventually_some, needs, test};
use serde_json::Value;

use crate::picture::{Album, svg, tokens};
use crate::support::{Place, Running, text};
use crate::watch::watch;

/// Set, the pictures are written and not compared.
const WRITE: &str = "LEASEHOLD_PICTURES";

#[test]
fn the_pictures_are_what_the_program_shows() {
    let server = needs("redis-server", Server::start_blocking(&[]));
    let place = Place::at(format!("redis-rw://127.0.0.1:{}/0", server.port()));
    let _holders = [
        ("backup/db1", "root@db1 pid 4711", "base backup", ""),
        ("cron/mail", "mail@web2 pid 812", "", ""),
        ("db/migrate", "ada@laptop pid 93", "schema change", ""),
        ("report/42", "worker@app1 pid 20", "nightly report", "--shared"),
        ("report/42", "worker@app2 pid 17", "nightly report", "--shared"),
        ("report/42", "worker@app3 pid 31", "", "--shared"),
    ]
    .map(|(key, label, reason, mode)| {
        let mut options = vec!["--ttl", "1h", "--label", label];
        options.extend(if reason.is_empty() { vec![] } else { vec!["--reason", reason] });
        options.extend(if mode.is_empty() { vec![] } else { vec![mode] });
        place.hold_with(&options, key)
    });
    let _waiters = ["db/migrate", "db/migrate", "cron/mail"]
        .map(|key| Running::start(&mut place.leasehold(&["run", key, "--", "true"])));
    eventually_some("all wait", || {
        let waiters = |key: &str| {
            let seen = text(&place.run(&["inspect", "--json", key]).stdout);
            serde_json::from_str::<Value>(&seen).unwrap()["waiters"].as_u64()
        };
        (waiters("db/migrate") == Some(2) && waiters("cron/mail") == Some(1)).then_some(())
    });
    let mut terminal = watch(&place, &[], (118, 16));
    let mut screens: Vec<(&str, Screen)> = Vec::new();
    terminal.shows("4 keys held");
    terminal.type_in("jj");
    terminal.shows("> db/migrate");
    screens.push(("table", terminal.screen()));
    terminal.type_in("x");
    terminal.shows("n leave it");
    screens.push(("force-release", terminal.screen()));
    terminal.type_in("nj\r");
    terminal.shows("3 readers hold it");
    terminal.shows("Esc back");
    screens.push(("details", terminal.screen()));
    let mut album = Album::default();
    album.tokens.extend(screens.iter().flat_map(|(_, screen)| tokens(screen)));
    for (name, screen) in screens {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("pictures/watch-{name}.svg"));
        let picture = svg(&screen, &mut album);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &picture).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            picture == kept,
            "{} is not what the program shows: run this test with {WRITE}=1\n{picture}",
            path.display()
        );
    }
}
