//! Follows `docs/tutorial.md`, section by section, on real servers.

use std::process::Command;

use leasehold_testkit::{etcd, eventually_some, mysql, needs, postgres, redis, test};

use crate::support::{Place, Running, path, signals_as_usual, wait_for};

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");

/// A command, and what it prints.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
}

#[test]
fn every_section_with_commands_is_followed() {
    let with_commands: Vec<_> = sections().into_iter().filter(|(_, text)| text.contains("\n$ ")).collect();
    for (heading, text) in &with_commands {
        let told = text.lines().filter(|line| line.starts_with("$ ")).count();
        assert_eq!(steps(text).len(), told, "a command of {heading} is not in a block ```console");
        assert!(include_str!("tutorial.rs").contains(&format!("(\"{heading}\", ")), "no test follows {heading}");
    }
    assert_eq!(with_commands.len(), 9);
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

/// Runs the commands of a section in one shell, on the server of this URL.
fn follow(heading: &str, documented: &str, url: &str) {
    let text = sections().into_iter().find(|(name, _)| name == heading).expect("the section is there").1;
    assert!(text.contains(&format!("LEASEHOLD_BACKEND={documented}\n")) || text.contains(&format!("'{documented}'\n")));
    let place = Place::at(url);
    let mut shell = Running::start(&mut shell());
    let steps = steps(&text.replace(documented, url));
    for (at, step) in steps.iter().enumerate() {
        let (code, printed) = run(&mut shell, &step.command);
        let mut lines = printed.lines().map(words);
        for expected in &step.expected {
            let found = lines.any(|line| is_like(&line, &words(expected)));
            assert!(found, "{heading}: {} did not print {expected:?}, but {printed}", step.command);
        }
        let failure_is_told = steps.get(at + 1).is_some_and(|next| next.command == "echo $?");
        assert_eq!(code != 0, failure_is_told, "{heading}: {} ended with {code}: {printed}", step.command);
        if let Some(key) = step.command.strip_suffix(" &").and_then(|command| command.split(" -- ").next()) {
            let key = key.rsplit(' ').next().unwrap();
            eventually_some("the lock is held", || (place.code(&["inspect", "-e", key]) == 0).then_some(()));
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
    shell.type_in(format!("{command}\ncode=$?; echo; echo ended with $code; (exit $code)\n"));
    let printed = shell.until("\nended with ");
    (shell.line().parse().unwrap(), printed)
}

/// The line has the words of the pattern, of which the last may be `…`: anything.
pub(crate) fn is_like(line: &[String], pattern: &[String]) -> bool {
    match pattern.split_last() {
        Some((last, rest)) if last == "…" => line.len() > rest.len() && line.starts_with(rest),
        _ => line == pattern,
    }
}

pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The sections by their headings.
fn sections() -> Vec<(String, String)> {
    let sections = TUTORIAL.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.map(|(heading, text)| (heading.to_owned(), text.to_owned())).collect()
}

pub(crate) fn steps(section: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in section.split("```console\n").skip(1).filter_map(|rest| rest.split("\n```").next()) {
        for line in block.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.to_owned(), expected: Vec::new() }),
                (None, Some(step)) => step.expected.push(line.to_owned()),
                (None, None) => panic!("a block begins with {line:?}, which is no command"),
            }
        }
    }
    steps
}
