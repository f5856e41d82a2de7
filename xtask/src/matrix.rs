//! `cargo xtask matrix`: writes the tables of the documents that are made from code: the README's table of backends, from the
//! output of `leasehold backends`, and what holds under which fault, from the tables by which `cargo xtask chaos` judges. Tests of the
//! two programs compare.

use std::fs;
use std::process::{ExitCode, Stdio};

use crate::workspace::{Backend, backends, cargo, root};

/// A part of a document that is written by a program.
struct Part {
    /// The document, from the root of the workspace.
    document: String,
    /// The part is between the lines `<!-- NAME:begin -->` and `<!-- NAME:end -->`.
    name: &'static str,
    /// The package of the program, and its arguments.
    package: &'static str,
    arguments: Vec<String>,
}

/// Writes the current tables into the documents.
pub(crate) fn write() -> Result<ExitCode, String> {
    // All are made before one is written: a README is a part of its crate, which would be compiled anew for the next one.
    let texts = parts()?.into_iter().map(|part| Ok((part.texts()?, part))).collect::<Result<Vec<_>, String>>()?;
    for ((before, after), part) in texts {
        if before == after {
            println!("{}: the part `{}` is up to date", part.document, part.name);
        } else {
            fs::write(root().join(&part.document), after).map_err(|e| format!("{}: {e}", part.document))?;
            println!("{}: the part `{}` was written anew", part.document, part.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn parts() -> Result<Vec<Part>, String> {
    let guarantees = |document: String, backend: Option<String>| Part {
        document,
        name: "faults",
        package: "leasehold-chaos",
        arguments: ["--guarantees".to_owned()].into_iter().chain(backend).collect(),
    };
    let mut parts = vec![
        Part {
            document: "README.md".to_owned(),
            name: "backends",
            package: "leasehold-cli",
            arguments: ["backends", "--markdown"].map(str::to_owned).to_vec(),
        },
        guarantees("docs/guarantees.md".to_owned(), None),
    ];
    // The one in memory has neither processes nor servers; and a run of `cargo xtask chaos` begins with a setup.
    let has_a_table = |backend: &Backend| {
        let readme = fs::read_to_string(root().join("crates").join(&backend.name).join("README.md"));
        backend.name != "memory" && readme.is_ok_and(|readme| readme.contains("### Under faults"))
    };
    let under_faults = backends()?.into_iter().filter(has_a_table);
    parts.extend(
        under_faults.map(|backend| guarantees(format!("crates/{}/README.md", backend.name), Some(backend.name))),
    );
    Ok(parts)
}

impl Part {
    /// The document as it is, and as it should be.
    fn texts(&self) -> Result<(String, String), String> {
        let path = root().join(&self.document);
        let before = fs::read_to_string(path).map_err(|e| format!("{}: {e}", self.document))?;
        let after = with_part(&before, self.name, &self.written()?).map_err(|e| format!("{}: {e}", self.document))?;
        Ok((before, after))
    }

    fn written(&self) -> Result<String, String> {
        let output = cargo()
            .args(["run", "-q", "-p", self.package, "--bin", program(self.package), "--"])
            .args(&self.arguments)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("cargo run: {e}"))?;
        let command = format!("{} {}", self.package, self.arguments.join(" "));
        if !output.status.success() {
            return Err(format!("`{command}` failed: {}", output.status));
        }
        String::from_utf8(output.stdout).map_err(|e| format!("`{command}`: {e}"))
    }
}

/// The program of a package.
fn program(package: &str) -> &str {
    if package == "leasehold-cli" { "leasehold" } else { package }
}

fn with_part(document: &str, name: &str, part: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let parts = document.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    let (head, tail) = parts.ok_or_else(|| format!("it lacks the lines {begin} and {end}"))?;
    Ok(format!("{head}{begin}\n{}\n{end}{tail}", part.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let document = "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n<!-- y:begin -->\n<!-- y:end -->\n";
        let changed = with_part(document, "x", "| new |\n").expect("both marks are there");
        assert_eq!(changed, document.replace("old", "| new |"));
        assert_eq!(with_part(&changed, "x", "| new |\n"), Ok(changed));
    }

    #[test]
    fn a_missing_mark_is_an_error() {
        with_part("<!-- x:end -->\n<!-- x:begin -->\n", "x", "t").expect_err("the marks are in the wrong order");
        with_part("text", "x", "t").expect_err("there are no marks");
    }
}
