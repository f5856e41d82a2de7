//! Reads the list of mutants that `cargo-mutants` generates.

use std::fmt;

use serde_json::Value;

use super::alone::{Alone, STATE};
use super::tool;

/// Files that are not part of the state machine, but observe it.
const NOT_OF_IT: [&str; 4] = ["check.rs", "rules.rs", "search/**", "tests/**"];

/// A place in a file: line and column, both from 1.
pub(super) type At = (usize, usize);

/// A change of one place in the state machine.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    /// The name of the file, for example `grant.rs`.
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

/// Returns the mutants of the files with these names, or of all files.
pub(super) fn list(alone: &Alone, files: &[&str]) -> Result<Vec<Mutant>, String> {
    let mut command = tool::command()?;
    command.args(["--list", "--json", "--diff"]).current_dir(&alone.0);
    for name in NOT_OF_IT {
        command.args(["-e", &format!("{STATE}/{name}")]);
    }
    if files.is_empty() {
        command.args(["-f", &format!("{STATE}/*.rs")]);
    }
    for file in files {
        command.args(["-f", &format!("{STATE}/{}.rs", file.trim_end_matches(".rs"))]);
    }
    let said = command.output().map_err(|failure| format!("cargo mutants: {failure}"))?;
    if !said.status.success() {
        return Err(format!("cargo mutants: {}", String::from_utf8_lossy(&said.stderr)));
    }
    let listed: Vec<Value> =
        serde_json::from_slice(&said.stdout).map_err(|failure| format!("cargo mutants: {failure}"))?;
    listed.iter().map(|mutant| read(mutant).ok_or_else(|| format!("cargo mutants says {mutant}"))).collect()
}

fn read(mutant: &Value) -> Option<Mutant> {
    let text = |name: &str| mutant[name].as_str().map(str::to_owned);
    let (file, diff) = (text("file")?, text("diff")?);
    let what = text("name")?.splitn(4, ':').nth(3)?.trim().to_owned();
    let line = diff.lines().filter(|line| line.starts_with('+')).nth(1)?.trim_start_matches('+');
    let line = line.replace("/* ~ changed by cargo-mutants ~ */", "");
    Some(Mutant {
        file: file.strip_prefix(STATE)?.trim_start_matches('/').to_owned(),
        what,
        replacement: text("replacement")?,
        span: span(&mutant["span"])?,
        function: span(&mutant["function"]["span"])?,
        line: line.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

fn span(of: &Value) -> Option<(At, At)> {
    let number = |of: &Value| of.as_u64().and_then(|number| usize::try_from(number).ok());
    let at = |of: &Value| Some((number(&of["line"])?, number(&of["column"])?));
    Some((at(&of["start"])?, at(&of["end"])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tool_lists_is_understood() {
        let listed = serde_json::json!({
            "file": "src/engine/state/mod.rs",
            "name": "src/engine/state/mod.rs:68:22: replace += with -= in State<W, L>::add",
            "replacement": "-=",
            "span": {"start": {"line": 68, "column": 22}, "end": {"line": 68, "column": 24}},
            "function": {"span": {"start": {"line": 66, "column": 5}, "end": {"line": 72, "column": 6}}},
            "diff": "--- a\n+++ b\n     {\n-    id += 1;\n+    id -= /* ~ changed by cargo-mutants ~ */ 1;\n",
        });
        let mutant = read(&listed).unwrap();
        assert_eq!((mutant.file.as_str(), mutant.line.as_str()), ("mod.rs", "id -= 1;"));
        assert_eq!(mutant.what, "replace += with -= in State<W, L>::add");
        assert_eq!((mutant.span, mutant.function), (((68, 22), (68, 24)), ((66, 5), (72, 6))));
    }
}
