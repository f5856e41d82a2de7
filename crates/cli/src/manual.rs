//! The manual pages: what clap knows of a command, and below it exit codes, environment and examples.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::EXAMPLES;
use crate::exit;

/// A word, and what it means.
type Entry = (&'static str, &'static str);

/// The manual page of one command, which has been built.
pub(crate) fn page(command: &Command) -> io::Result<Vec<u8>> {
    let (man, name) = (Man::new(command.clone()), command.get_name());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut more = Roff::default();
    more.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in exit_status(name) {
        more.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    more.control("SH", ["ENVIRONMENT"]);
    for (variable, meaning) in environment(name) {
        more.control("TP", []).text([bold(*variable)]).text([roman(*meaning)]);
    }
    more.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in examples(name) {
        more.text([roman(line)]);
    }
    more.control("fi", []);
    more.to_writer(&mut page)?;
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// Where the command has codes of its own, these, and those that all commands have.
fn exit_status(command: &str) -> Vec<(String, &'static str)> {
    let own: &[(u8, &str)] = match command {
        "leasehold" | "run" => &[
            (exit::CONFLICT, "somebody else held the lock for the whole wait (-E)"),
            (exit::LOST, "the lock was lost before the command ended (--lost-exit-code)"),
            (exit::NOT_EXECUTABLE, "the command cannot be executed"),
            (exit::NOT_FOUND, "there is no such command"),
        ],
        "inspect" => &[(0, "the key is held, or free"), (1, "the key is free (--exit-code)")],
        "force-release" => &[(0, "somebody held the lock"), (1, "it was free, or --token is not of its holder")],
        "hold" => &[
            (0, "the lock was released, or the input ended"),
            (exit::CONFLICT, "somebody else held the lock for the whole wait"),
            (exit::LOST, "the lock was lost"),
        ],
        "acquire" | "wait" => &[(0, "it is done"), (exit::CONFLICT, "somebody else held the lock for the whole wait")],
        "renew" | "release" => &[(0, "it is done"), (exit::LOST, "the lock was not held any more")],
        "doctor" | "heal" => &[(0, "all is well"), (1, "there are warnings"), (2, "there are errors")],
        _ => &[(0, "it is done")],
    };
    let all = [
        (exit::USAGE, "bad usage: arguments, durations, keys, URLs, unknown stores"),
        (exit::UNAVAILABLE, "the store could not be reached, or gave no answer"),
        (exit::SYSTEM, "the operating system refused something that it never refuses"),
        (exit::CONFIG, "no permission, wrong password, wrong configuration, or not supported by this store"),
    ];
    let mut codes: Vec<_> = own.iter().chain(&all).copied().collect();
    codes.sort_unstable();
    let mut lines: Vec<_> = codes.into_iter().map(|(code, meaning)| (code.to_string(), meaning)).collect();
    if matches!(command, "leasehold" | "run") {
        lines.insert(0, ("the command's".to_owned(), "it ran under the lock from its beginning to its end"));
    }
    lines.push(("128 + N".to_owned(), "signal N ended it"));
    lines
}

fn environment(command: &str) -> &'static [Entry] {
    const RUN: &[Entry] = &[
        STORE,
        PASSWORD,
        LOG,
        ("LEASEHOLD_KEY", "set for the command: the key; with --permits that of the permit"),
        ("LEASEHOLD_TOKEN", "set for the command: the fencing token, larger with every grant of the key"),
        ("LEASEHOLD_TOKENS", "set for a command under several keys: a JSON object with the token of each"),
        (
            "LEASEHOLD_EXPIRES_IN_MS",
            "set for the command, if the store has leases: what was left of the lease when it was started",
        ),
    ];
    const STORE: Entry = (
        "LEASEHOLD_BACKEND",
        "the URL of the store, where --backend does not name one; none: there is no default. For the command it is set without a password",
    );
    const PASSWORD: Entry =
        ("LEASEHOLD_PASSWORD", "the password of the store, where its URL has none; it is not handed on to the command");
    const LOG: Entry = ("RUST_LOG", "what is logged on standard error, such as leasehold=debug");
    const SCREEN: Entry = ("NO_COLOR, TERM=dumb", "no colours");
    match command {
        "leasehold" | "run" => RUN,
        "watch" => &[STORE, PASSWORD, LOG, SCREEN],
        "agent" => &[STORE, PASSWORD, LOG, ("LEASEHOLD_AGENT", "the socket, where --socket does not name one")],
        _ => &[STORE, PASSWORD, LOG],
    }
}

fn examples(command: &str) -> Vec<&'static str> {
    let own: &[&str] = match command {
        "leasehold" | "run" => return EXAMPLES.lines().filter_map(|line| line.strip_prefix("  ")).collect(),
        "hold" => &["leasehold hold nightly -w 30s", "leasehold hold"],
        "agent" => &["leasehold --backend redis://db1 agent", "leasehold agent --policy /etc/leasehold.policy"],
        "acquire" => &["leasehold --backend redis://db1 acquire deploy --ttl 10m > lock"],
        "renew" => &["leasehold --backend redis://db1 renew - --ttl 10m  reads the text from the input"],
        "release" => &["leasehold --backend redis://db1 release -  reads the text from the input"],
        "wait" => &["leasehold wait db -w 30s"],
        "inspect" => &["leasehold inspect db", "while leasehold inspect --exit-code db; do sleep 1; done"],
        "list" => &["leasehold list job/", "leasehold --backend redis://db1 list --json"],
        "force-release" => &["leasehold force-release db", "leasehold force-release db --token 1812345678901248"],
        "watch" => &["leasehold watch job/", "leasehold watch --json"],
        "migrate" => &["leasehold --backend mysql://ada@db1/locks --password-file FILE migrate"],
        "gc" => &["leasehold --backend mysql://ada@db1/locks gc --older-than 30d"],
        "doctor" => &["leasehold --backend redis://db1 doctor", "leasehold doctor --ttl 10s --json"],
        "bench" => &["leasehold bench redis://db1:6379 --seconds 5"],
        "heal" => &["leasehold --backend redlock:redis://db1,redis://db2,redis://db3 heal"],
        "backends" => &["leasehold backends"],
        "completions" => &["leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold"],
        "man" => &["leasehold man run | man -l -", "leasehold man --directory /usr/local/share/man/man1"],
        _ => &[],
    };
    own.to_vec()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Cli;

    #[test]
    fn the_examples_of_every_command_can_be_typed() {
        for command in std::iter::once(&Cli::command()).chain(Cli::command().get_subcommands()) {
            let examples = examples(command.get_name());
            let mut typed = 0;
            for example in examples.iter().filter(|line| line.starts_with("leasehold ")) {
                // What follows two spaces says what it does, and what follows these signs is the shell's.
                let line = example.split("  ").next().unwrap_or_default().split(['|', '>']).next().unwrap_or_default();
                let parsed = Cli::try_parse_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{example}: {parsed:?}");
                typed += 1;
            }
            assert!(typed > 0, "{} has no example", command.get_name());
        }
    }
}
