//! Follows the pages whose commands a reader can type, section by section.

use std::process::Command;

use leasehold_testkit::{etcd, eventually_some, mysql, needs, postgres, redis, test};

use crate::support::{Place, Running, path, redis as redis_server, signals_as_usual, wait_for};

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");
const COMMANDS: &str = include_str!("../../../../docs/commands.md");

/// A command, and what it prints.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
}

#[test]
fn every_section_with_commands_is_followed() {
    for page in [TUTORIAL, COMMANDS] {
        let told = page.lines().filter(|line| line.starts_with("$ ")).count();
        assert_eq!(steps(page).len(), told, "a command is not in a block ```console");
    }
    let with_commands: Vec<_> = sections(TUTORIAL).filter(|(_, text)| text.contains("\n$ ")).collect();
    for (heading, _) in &with_commands {
        assert!(include_str!("pages.rs").contains(&format!("(\"{heading}\", ")), "no test follows {heading}");
    }
    assert_eq!(with_commands.len(), 9);
}

#[test]
fn the_commands_on_files() {
    for (heading, text) in sections(COMMANDS).filter(|(_, text)| text.contains("=file:")) {
        run_all((heading, text), "file:/srv/locks", &Place::file(), prints);
    }
}

#[test]
fn the_commands_on_redis() {
    for (heading, text) in sections(COMMANDS).filter(|(_, text)| text.contains("=redis:")) {
        let (_server, place) = redis_server("");
        run_all((heading, text), "redis://127.0.0.1:6379", &place, prints);
    }
}

#[test]
fn on_files() {
    let directory = tempfile::tempdir().unwrap();
    follow("Files", "file:$HOME/leasehold-tutorial", &format!("file:{}", directory.path().join("locks").display()));
}

#[test]
fn on_redis() {
    let servers: Option<Vec<_>> = (0..6).map(|_| redis::Server::start_blocking(&[])).collect();
    let ports: Vec<_> = needs("redis-server", servers.as_ref()).iter().map(redis::Server::port).collect();
    let nodes = |ports: &[u16]| {
        let nodes: Vec<_> = ports.iter().map(|port| format!("redis://127.0.0.1:{port}")).collect();
        format!("redlock:{}", nodes.join(","))
    };
    follow("Three Redis servers", &nodes(&[6379, 6380, 6381]), &nodes(&ports[..3]));
    // Each has a server of its own: what one leaves, another refuses.
    for (heading, scheme, port) in [
        ("Redis", "", ports[3]),
        ("Redis, with readers", "redis-rw:", ports[4]),
        ("Redis, for owners that take a key again", "reentrant:", ports[5]),
    ] {
        let url = |port| format!("{scheme}redis://127.0.0.1:{port}");
        follow(heading, &url(6379), &url(port));
    }
}

#[test]
fn on_mysql() {
    let server = wait_for(mysql::Server::needed(&[]));
    for (heading, scheme) in [("MySQL or MariaDB", "mysql:"), ("MySQL or MariaDB, with readers", "mysql-rw:")] {
        let url = server.url().replacen("mysql:", scheme, 1);
        follow(heading, &format!("{scheme}//root@127.0.0.1:3306/leasehold"), &url);
    }
}

#[test]
fn on_postgres() {
    let server = wait_for(postgres::Server::needed(&[]));
    follow("PostgreSQL", "postgres://leasehold@127.0.0.1:5432/leasehold?sslmode=disable", &server.url());
}

#[test]
fn on_etcd() {
    let cluster = wait_for(etcd::Cluster::one(&[]));
    follow("etcd", "etcd://127.0.0.1:2379", &cluster.url());
}

/// Follows a section of the tutorial on the server of this URL: its commands print what it shows, and maybe more.
fn follow(heading: &str, documented: &str, url: &str) {
    let section = sections(TUTORIAL).find(|(name, _)| *name == heading).expect("the section is there");
    run_all(section, documented, &Place::at(url), |printed, shown| {
        let any = || ANYTHING.to_owned();
        let among_others: Vec<_> = shown.iter().flat_map(|line| [any(), line.clone()]).chain([any()]).collect();
        prints(printed, &among_others)
    });
}

/// Runs the commands of a section in one shell, on this store.
fn run_all(
    (heading, text): (&str, &str),
    documented: &str,
    place: &Place,
    is_shown: impl Fn(&[String], &[String]) -> bool,
) {
    assert!(text.contains(&format!("LEASEHOLD_BACKEND={documented}\n")) || text.contains(&format!("'{documented}'\n")));
    let mut shell = Running::start(&mut shell());
    let steps = steps(&text.replace(documented, place.backend()));
    for (at, Step { command, expected }) in steps.iter().enumerate() {
        let (code, printed) = run(&mut shell, command);
        let printed: Vec<_> = printed.lines().map(words).filter(|line| !line.is_empty()).collect();
        assert!(is_shown(&printed, expected), "{heading}: {command} printed {printed:#?}, and not {expected:#?}");
        let failure_is_told = steps.get(at + 1).is_some_and(|next| next.command == "echo $?");
        assert_eq!(code != 0, failure_is_told, "{heading}: {command} ended with {code}: {printed:?}");
        if let Some(key) = command.strip_suffix(" &").and_then(|command| command.split(" -- ").next()) {
            let key = key.rsplit(' ').next().unwrap();
            eventually_some("the lock is held", || (place.code(&format!("inspect -e {key}")) == 0).then_some(()));
        }
    }
}

/// A shell that finds the program, and prints errors where it prints all else.
pub(crate) fn shell() -> Command {
    signals_as_usual();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 2>&1; exec sh"]).env_remove("LEASEHOLD_PASSWORD").env_remove("RUST_LOG");
    shell.env("PATH", path());
    shell
}

/// Runs a command to its end, and answers its exit code and what it printed. The next command finds the code in `$?`.
fn run(shell: &mut Running, command: &str) -> (i32, String) {
    const END: &str = "\nended with ";
    shell.type_in(format!("{command}\ncode=$?; echo; echo ended with $code; (exit $code)\n"));
    let printed = shell.until(END);
    (shell.line().parse().unwrap(), printed.trim_end_matches(END).to_owned())
}

/// What stands for anything in a line, and alone for any number of lines.
const ANYTHING: &str = "…";

/// Whether the lines are those that a page shows.
fn prints(printed: &[String], shown: &[String]) -> bool {
    match (shown, printed) {
        ([], _) => printed.is_empty(),
        ([any, rest @ ..], _) if any == ANYTHING => (0..=printed.len()).any(|at| prints(&printed[at..], rest)),
        ([line, rest @ ..], [first, behind @ ..]) => is_like(first, line) && prints(behind, rest),
        _ => false,
    }
}

/// Whether a line is the one that a page shows.
pub(crate) fn is_like(line: &str, shown: &str) -> bool {
    let Some((before, behind)) = shown.split_once(ANYTHING) else { return line == shown };
    let Some(rest) = line.strip_prefix(before) else { return false };
    rest.char_indices().any(|(at, _)| is_like(&rest[at..], behind)) || is_like("", behind)
}

/// The line with one space between two words.
pub(crate) fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The sections with their headings.
fn sections(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'))
}

pub(crate) fn steps(section: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in section.split("```console\n").skip(1).filter_map(|rest| rest.split("\n```").next()) {
        for line in block.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.to_owned(), expected: Vec::new() }),
                (None, Some(step)) => step.expected.push(words(line)),
                (None, None) => panic!("a block begins with {line:?}, which is no command"),
            }
        }
    }
    steps
}
