use std::fmt::Write;
use std::fs;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use leasehold::{Capabilities, Capability, Kind, kinds};

use crate::admin::{columns, print};
use crate::args::{BackendsArgs, Cli, CompletionsArgs, ManArgs};
use crate::exit::Failure;
use crate::manual;

/// `leasehold backends`: shows the capabilities that each backend claims.
pub(crate) fn backends(args: &BackendsArgs) -> Result<u8, Failure> {
    let kinds = kinds();
    print(&if args.markdown { markdown(&kinds) } else { plain(&kinds) })?;
    Ok(0)
}

/// `leasehold completions`: prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let (mut text, mut program) = (Vec::new(), Cli::command());
    clap_complete::generate(args.shell, &mut program, "leasehold", &mut text);
    print(&with_keys(args.shell, &program, &String::from_utf8_lossy(&text)))?;
    Ok(0)
}

/// The keys in what `list --json` prints. Only those without a character that means something to a shell: bash expands words
/// that it completes, so that a key `$(…)` of somebody else would be run.
const KEYS: &str = r#"2>/dev/null | sed -n 's|^{"key":"\([-A-Za-z0-9_./:@%+=,#]*\)",.*|\1|p'"#;

/// A script that completes keys, too, by those that are held, unless the line names another store.
fn with_keys(shell: Shell, program: &clap::Command, script: &str) -> String {
    let takes_key = |command: &&clap::Command| command.get_arguments().any(|argument| argument.get_id() == "key");
    let commands: Vec<_> = program.get_subcommands().filter(takes_key).map(clap::Command::get_name).collect();
    match shell {
        Shell::Bash => {
            let commands = commands.join("|");
            format!(
                r#"{script}
_leasehold_with_keys() {{
    _leasehold "$@"
    local before=" ${{COMP_WORDS[*]:0:COMP_CWORD}} "
    if [[ $before =~ \ ({commands})\  && $before != *' -- '* && $before != *' --backend'* && $2 != -* ]]; then
        # A word ends at a colon, too, and what is completed is what comes behind it.
        local word="${{COMP_LINE:0:COMP_POINT}}"
        word="${{word##*[[:space:]]}}"
        local before_it="${{word%"${{2#[:=]}}"}}" key
        for key in $(compgen -W "$(leasehold list --json "$word" {KEYS})" -- "$word"); do
            COMPREPLY+=("${{key#"$before_it"}}")
        done
    fi
}}
complete -F _leasehold_with_keys -o bashdefault -o default leasehold
"#
            )
        }
        Shell::Zsh => {
            let keys = format!(
                "_leasehold_keys() {{\n    [[ $BUFFER == *' --backend'* ]] || compadd -- ${{(f)\"$(leasehold list --json \"$PREFIX\" {KEYS})\"}}\n}}\n\n"
            );
            let by_keys = |line: &str| {
                let takes_key = line.contains(":key -- ") || line.contains(":KEY:_default");
                if takes_key { line.replace(":_default'", ":_leasehold_keys'") } else { line.to_owned() }
            };
            let script = script.lines().map(by_keys).collect::<Vec<_>>().join("\n");
            script.replacen("_leasehold() {", &format!("{keys}_leasehold() {{"), 1) + "\n"
        }
        Shell::Fish => commands.iter().fold(script.to_owned(), |script, command| {
            let here = r#"not string match -q "* --backend*" -- (commandline -cp)"#;
            let keys = format!("leasehold list --json (commandline -ct) {KEYS}");
            script
                + &format!(
                    "complete -c leasehold -n '__fish_leasehold_using_subcommand {command}; and {here}' -a \"({})\"\n",
                    keys.replace('"', "\\\"")
                )
        }),
        _ => script.to_owned(),
    }
}

/// `leasehold man`: prints a manual page, or writes all of them.
pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    if let Some(directory) = &args.directory {
        let written = fs::create_dir_all(directory).and_then(|()| {
            std::iter::once(&program).chain(program.get_subcommands()).try_for_each(|command| {
                fs::write(directory.join(Man::new(command.clone()).get_filename()), manual::page(command)?)
            })
        });
        written.map_err(|cause| Failure::Usage(format!("{}: {cause}", directory.display())))?;
        return Ok(0);
    }
    let command = match &args.command {
        None => &program,
        Some(name) => {
            program.find_subcommand(name).ok_or_else(|| Failure::Usage(format!("there is no command {name:?}")))?
        }
    };
    print(&String::from_utf8_lossy(&manual::page(command).map_err(Failure::System)?))?;
    Ok(0)
}

fn plain(kinds: &[Kind]) -> String {
    let promised = |can: &Capabilities| {
        let names = Capability::ALL.iter().filter(|one| can.has(**one)).map(|one| one.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let heading = ["BACKEND", "SCHEMES", "FOR", "PROMISES"].map(str::to_owned);
    let rows = kinds.iter().map(|kind| {
        [kind.name.to_owned(), kind.schemes.join(" "), kind.purpose.to_owned(), promised(&(kind.capabilities)())]
    });
    columns(&std::iter::once(heading).chain(rows).collect::<Vec<_>>())
}

/// The table of backends in the README of the repository.
fn markdown(kinds: &[Kind]) -> String {
    let mut text = "| Backend | URL | For | Does not claim |\n|---|---|---|---|\n".to_owned();
    for kind in kinds {
        let urls: Vec<_> = kind.schemes.iter().map(|scheme| format!("`{scheme}:`")).collect();
        let can = (kind.capabilities)();
        let declined = Capability::ALL.iter().filter(|one| !can.has(**one)).map(|one| one.as_str());
        let _ = writeln!(
            text,
            "| [`{0}`](crates/{1}) | {2} | {3} | {4} |",
            kind.package,
            // Its folder in the repository.
            kind.package.strip_prefix("leasehold-").unwrap_or(kind.package),
            urls.join(" "),
            kind.purpose,
            declined.collect::<Vec<_>>().join(", ")
        );
    }
    text
}
