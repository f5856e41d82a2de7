//! The mutants that `cargo-mutants` generates.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::process::Command;

use serde_json::Value;

use super::rules::Rule;
use super::subject::Subject;
use crate::command::printed;
use crate::tools;
use crate::workspace::{read, root};

/// The version. Another version may generate other mutants, and the list of equivalent ones is for this version.
const VERSION: &str = "27.1.0";

/// They are not part of the state machine, but observe it.
const LEFT_OUT: [&str; 3] = ["check.rs", "search/**", "tests/**"];

/// A place in a file: line and column, both from 1.
pub(super) type At = (usize, usize);

/// A change of one place.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    /// The name of the file, from the folder of the changed files on, for example `grant.rs`.
    pub(super) file: String,
    /// The description, for example `replace > with >= in Key<W, L>::share`.
    pub(super) what: String,
    /// The text that replaces the original text, which is the one in `span`.
    pub(super) replacement: String,
    pub(super) span: (At, At),
    /// The place of the function that contains it.
    pub(super) function: (At, At),
    /// The first changed line, after the change.
    pub(super) line: String,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n            {}", self.file, self.span.0.0, self.what, self.line)
    }
}

/// By what these mutants are known in another run, in their order: the file, the description, and the line as it is changed, because
/// other lines may come and go above it. Those that are alike are told apart by their order.
pub(super) fn names(mutants: &[Mutant]) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let name = |mutant: &Mutant| {
        let name = format!("{}: {}: {}", mutant.file, mutant.what, mutant.line);
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name} ({times})") }
    };
    mutants.iter().map(name).collect()
}

/// Installs the program below the target folder.
pub(super) fn install() -> Result<(), String> {
    tools::compile("cargo-mutants", VERSION, &[])
}

/// Returns the mutants of the files and folders with these names, or of all files.
pub(super) fn list(subject: &Subject, files: &[&str]) -> Result<Vec<Mutant>, String> {
    let program = tools::installed("cargo-mutants");
    let program = program.ok_or("there is no cargo-mutants: cargo xtask mutants --install")?;
    let version = printed(Command::new(&program).args(["mutants", "--version"]))?;
    if version.split_whitespace().next_back() != Some(VERSION) {
        return Err(format!("this is {}, and not {VERSION}: cargo xtask mutants --install", version.trim()));
    }
    let sources = subject.sources.as_str();
    let mut command = Command::new(program);
    command.env("CARGO", env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).current_dir(root());
    command.args(["mutants", "--list", "--json", "--diff", "--package", &subject.package]);
    command.args(LEFT_OUT.iter().flat_map(|name| ["-e".to_owned(), format!("{sources}/{name}")]));
    if files.is_empty() {
        command.args(["-f", &format!("{sources}/**")]);
    }
    for file in files {
        let file = file.trim_end_matches(".rs");
        command.args(["-f", &format!("{sources}/{file}.rs"), "-f", &format!("{sources}/{file}/**")]);
    }
    let listed: Vec<Value> = serde_json::from_str(&printed(&mut command)?).map_err(|failure| failure.to_string())?;
    // What is in no function has no place for an arm.
    let in_functions = listed.iter().filter(|mutant| !mutant["function"].is_null());
    let mutant = |mutant: &Value| listed_one(mutant, sources).ok_or_else(|| format!("cargo mutants says {mutant}"));
    let mut mutants = in_functions.map(mutant).collect::<Result<Vec<_>, _>>()?;
    let is_chosen = |rule: &&Rule| mutants.iter().any(|mutant| mutant.file == rule.file);
    let without = |rule: &Rule| without(rule, &read(&root().join(sources).join(rule.file))?, &mutants);
    let of_rules = subject.rules.iter().filter(is_chosen).map(without).collect::<Result<Vec<_>, _>>()?;
    mutants.extend(of_rules);
    Ok(mutants)
}

/// A rule as a mutant beside those that the tool lists: it knows where functions begin and end.
fn without(rule: &Rule, text: &str, listed: &[Mutant]) -> Result<Mutant, String> {
    let why = |what: &str| format!("{}: {:?} {what}", rule.file, rule.right);
    let mut found = text.match_indices(rule.right).map(|(at, _)| at);
    let (Some(at), None) = (found.next(), found.next()) else { return Err(why("does not stand there once")) };
    let span = (place(text, at), place(text, at + rule.right.len()));
    let around =
        |mutant: &&Mutant| mutant.file == rule.file && mutant.function.0 <= span.0 && span.1 <= mutant.function.1;
    let function = listed.iter().find(around).ok_or_else(|| why("is in no function with other mutants"))?.function;
    Ok(Mutant {
        file: rule.file.to_owned(),
        what: rule.wrong.to_owned(),
        replacement: rule.instead.to_owned(),
        span,
        function,
        line: rule.instead.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// Line and column of an offset, both from 1.
fn place(text: &str, at: usize) -> At {
    let before = &text[..at];
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}

fn listed_one(mutant: &Value, sources: &str) -> Option<Mutant> {
    let text = |name: &str| mutant[name].as_str().map(str::to_owned);
    let line = text("diff")?.lines().filter(|line| line.starts_with('+')).nth(1)?.trim_start_matches('+').to_owned();
    let line = line.replace("/* ~ changed by cargo-mutants ~ */", "");
    Some(Mutant {
        file: text("file")?.strip_prefix(sources)?.trim_start_matches('/').to_owned(),
        what: text("name")?.splitn(4, ':').nth(3)?.trim().to_owned(),
        replacement: text("replacement")?,
        span: span(&mutant["span"])?,
        function: span(&mutant["function"]["span"])?,
        line: line.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

fn span(of: &Value) -> Option<(At, At)> {
    let number = |of: &Value| usize::try_from(of.as_u64()?).ok();
    let at = |of: &Value| Some((number(&of["line"])?, number(&of["column"])?));
    Some((at(&of["start"])?, at(&of["end"])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(line: usize, name: &str) -> Mutant {
        let listed = serde_json::json!({
            "file": "src/state/mod.rs",
            "name": format!("src/state/mod.rs:{line}:22: {name}"),
            "replacement": "-=",
            "span": {"start": {"line": line, "column": 22}, "end": {"line": line, "column": 24}},
            "function": {"span": {"start": {"line": 1, "column": 1}, "end": {"line": 72, "column": 6}}},
            "diff": "--- a\n+++ b\n     {\n-    id += 1;\n+    id -= /* ~ changed by cargo-mutants ~ */ 1;\n",
        });
        listed_one(&listed, "src/state").unwrap()
    }

    #[test]
    fn a_mutant_is_known_again_where_its_line_has_moved_and_is_told_from_one_that_is_alike() {
        let before = names(&[mutant(2, "x"), mutant(4, "x"), mutant(5, "y")]);
        assert_eq!(before, names(&[mutant(3, "x"), mutant(5, "x"), mutant(6, "y")]));
        assert_eq!(before, ["mod.rs: x: id -= 1;", "mod.rs: x: id -= 1; (2)", "mod.rs: y: id -= 1;"]);
    }

    #[test]
    fn a_rule_is_a_mutant_of_the_function_around_it() {
        let rule = Rule { file: "mod.rs", wrong: "w", right: "b > c", instead: "true" };
        let of_it = without(&rule, "fn a() -> bool {\n    ä(b > c)\n}\n", &[mutant(2, "x")]).unwrap();
        assert_eq!((of_it.span, of_it.function), (((2, 7), (2, 12)), ((1, 1), (72, 6))));
        assert!(without(&rule, "fn a() {}", &[mutant(2, "x")]).is_err());
    }
}
