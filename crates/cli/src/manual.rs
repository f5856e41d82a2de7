//! The manual pages: what clap knows of a command, and below it exit codes, environment and examples.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::EXAMPLES;

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
    for (heading, entries) in [("EXIT STATUS", &EXIT_STATUS[..]), ("ENVIRONMENT", &ENVIRONMENT[..])] {
        more.control("SH", [heading]);
        for (word, meaning) in entries {
            more.control("TP", []).text([bold(*word)]).text([roman(*meaning)]);
        }
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

const EXIT_STATUS: [(&str, &str); 13] = [
    ("the command's", "run: the command ran under the lock from its beginning to its end"),
    ("0", "it is done, or all is well"),
    (
        "1",
        "inspect --exit-code: the lock is free; force-release: nothing was released; doctor, heal: there are warnings",
    ),
    ("2", "doctor, heal: there are errors"),
    ("64", "bad usage: arguments, durations, keys, URLs, unknown stores"),
    ("69", "the store could not be reached, or gave no answer (--unavailable-exit-code)"),
    ("70", "the operating system refused something that it never refuses"),
    ("75", "somebody else held the lock for the whole wait (-E)"),
    ("76", "the lock was lost, or not held any more (--lost-exit-code)"),
    ("78", "no permission, wrong password, wrong configuration, or not supported by this store"),
    ("126", "run: the command cannot be executed"),
    ("127", "run: there is no such command"),
    ("128 + N", "signal N ended it"),
];

const ENVIRONMENT: [(&str, &str); 9] = [
    (
        "LEASEHOLD_BACKEND",
        "the URL of the store, where --backend does not name one; none: there is no default. For the command of run it is set without a password",
    ),
    ("LEASEHOLD_PASSWORD", "the password of the store, where its URL has none; it is not handed on to the command"),
    ("LEASEHOLD_AGENT", "agent: the socket, where --socket does not name one"),
    ("RUST_LOG", "what is logged on standard error, such as leasehold=debug"),
    ("NO_COLOR, TERM=dumb", "watch: no colours"),
    ("LEASEHOLD_KEY", "set for the command of run: the key; with --permits that of the permit"),
    ("LEASEHOLD_TOKEN", "set for it: the fencing token, larger with every grant of the key"),
    ("LEASEHOLD_TOKENS", "set for it under several keys: a JSON object with the token of each"),
    ("LEASEHOLD_EXPIRES_IN_MS", "set for it, if the store has leases: what was left of the lease when it was started"),
];

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
