//! Reads the list of mutants that `cargo-mutants` generates.

use std::fmt;

use serde_json::Value;

use super::subject::Subject;
use super::tool;

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

/// Returns the mutants of the files and folders with these names, or of all files.
pub(super) fn list(subject: &Subject, files: &[&str]) -> Result<Vec<Mutant>, String> {
    let sources = subject.sources;
    let mut command = tool::command()?;
    command.args(["--list", "--json", "--diff", "--package", subject.package]).current_dir(&subject.originals);
    for name in subject.left_out {
        command.args(["-e", &format!("{sources}/{name}")]);
    }
    if files.is_empty() {
        command.args(["-f", &format!("{sources}/**")]);
    }
    for file in files {
        let file = file.trim_end_matches(".rs");
        command.args(["-f", &format!("{sources}/{file}.rs"), "-f", &format!("{sources}/{file}/**")]);
    }
    let said = command.output().map_err(|failure| format!("cargo mutants: {failure}"))?;
    if !said.status.success() {
        return Err(format!("cargo mutants: {}", String::from_utf8_lossy(&said.stderr)));
    }
    let listed: Vec<Value> =
        serde_json::from_slice(&said.stdout).map_err(|failure| format!("cargo mutants: {failure}"))?;
    // What is in no function has no place for an arm.
    listed
        .iter()
        .filter(|mutant| !mutant["function"].is_null())
        .map(|mutant| read(mutant, sources).ok_or_else(|| format!("cargo mutants says {mutant}")))
        .collect()
}

fn read(mutant: &Value, sources: &str) -> Option<Mutant> {
    let text = |name: &str| mutant[name].as_str().map(str::to_owned);
    let (file, diff) = (text("file")?, text("diff")?);
    let what = text("name")?.splitn(4, ':').nth(3)?.trim().to_owned();
    let line = diff.lines().filter(|line| line.starts_with('+')).nth(1)?.trim_start_matches('+');
    let line = line.replace("/* ~ changed by cargo-mutants ~ */", "");
    Some(Mutant {
        file: file.strip_prefix(sources)?.trim_start_matches('/').to_owned(),
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
        let mutant = read(&listed, "src/engine/state").unwrap();
        assert_eq!((mutant.file.as_str(), mutant.line.as_str()), ("mod.rs", "id -= 1;"));
        assert_eq!(mutant.what, "replace += with -= in State<W, L>::add");
        assert_eq!((mutant.span, mutant.function), (((68, 22), (68, 24)), ((66, 5), (72, 6))));
    }
}
