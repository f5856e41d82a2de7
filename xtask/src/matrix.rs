//! `cargo xtask matrix`: writes the README's table of backends, from the output of `leasehold backends`.

use std::fs;
use std::process::{ExitCode, Stdio};

use crate::workspace::{cargo, root};

const BEGIN: &str = "<!-- backends:begin -->";
const END: &str = "<!-- backends:end -->";

/// Writes the current table into the README.
pub(crate) fn write() -> Result<ExitCode, String> {
    let (before, after) = texts()?;
    if before == after {
        println!("README.md: the table of backends is up to date");
    } else {
        fs::write(root().join("README.md"), after).map_err(|e| format!("README.md: {e}"))?;
        println!("README.md: the table of backends was written anew");
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if `write` would change anything.
pub(crate) fn check() -> Result<ExitCode, String> {
    let (before, after) = texts()?;
    if before == after {
        println!("README.md: the table of backends is up to date");
        return Ok(ExitCode::SUCCESS);
    }
    println!("README.md: the table of backends is out of date; `cargo xtask matrix` writes it");
    Ok(ExitCode::FAILURE)
}

/// The README as it is, and as it should be.
fn texts() -> Result<(String, String), String> {
    let before = fs::read_to_string(root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let after = with_table(&before, &table()?)?;
    Ok((before, after))
}

fn table() -> Result<String, String> {
    let output = cargo()
        .args(["run", "-q", "-p", "leasehold-cli", "--bin", "leasehold", "--", "backends", "--markdown"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo run: {e}"))?;
    if !output.status.success() {
        return Err(format!("`leasehold backends --markdown` failed: {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("`leasehold backends --markdown`: {e}"))
}

fn with_table(readme: &str, table: &str) -> Result<String, String> {
    let parts = readme.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.ok_or_else(|| format!("README.md lacks the lines {BEGIN} and {END}"))?;
    Ok(format!("{head}{BEGIN}\n{}\n{END}{tail}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let readme = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let changed = with_table(&readme, "| new |\n").expect("both marks are there");
        assert_eq!(changed, format!("a\n{BEGIN}\n| new |\n{END}\nb\n"));
        assert_eq!(with_table(&changed, "| new |\n"), Ok(changed));
    }

    #[test]
    fn a_missing_mark_is_an_error() {
        with_table(&format!("{END}\n{BEGIN}\n"), "t").expect_err("the marks are in the wrong order");
        with_table("text", "t").expect_err("there are no marks");
    }
}
