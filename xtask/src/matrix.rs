//! `cargo xtask matrix`: writes the tables of the documents that are made from code: the README's table of backends, from the
//! output of `leasehold backends`, and what holds under which fault, from the tables by which `cargo xtask chaos` judges. Tests of the
//! two programs compare.

use crate::command::printed;
use crate::workspace::{backends, cargo, read, root, write};

const BACKENDS: &[&str] = &["leasehold-cli", "--bin", "leasehold", "--", "backends", "--markdown"];
const FAULTS: &[&str] = &["leasehold-chaos", "--bin", "leasehold-chaos", "--", "--guarantees"];

/// Writes the current tables into the documents. Each is between the lines `<!-- NAME:begin -->` and `<!-- NAME:end -->`.
pub(crate) fn write_all() -> Result<bool, String> {
    let mut parts = vec![
        ("README.md".to_owned(), "backends", BACKENDS.to_vec()),
        ("docs/guarantees.md".to_owned(), "faults", FAULTS.to_vec()),
    ];
    // The one in memory has neither processes nor servers; and a run of `cargo xtask chaos` begins with a setup.
    let backends = backends()?;
    for backend in backends.iter().filter(|name| *name != "memory") {
        let document = format!("crates/{backend}/README.md");
        if read(&root().join(&document)).is_ok_and(|readme| readme.contains("### Under faults")) {
            parts.push((document, "faults", [FAULTS, &[backend]].concat()));
        }
    }
    let mut texts = Vec::new();
    // All are made before one is written: a README is a part of its crate, which would be compiled anew for the next one.
    for (document, name, program) in parts {
        let before = read(&root().join(&document))?;
        let table = printed(cargo().args(["run", "-q", "-p"]).args(program))?;
        let after = with_part(&before, name, &table).map_err(|why| format!("{document}: {why}"))?;
        texts.push((document, name, before, after));
    }
    for (document, name, before, after) in texts {
        if before == after {
            println!("{document}: the part `{name}` is up to date");
        } else {
            write(&root().join(&document), &after)?;
            println!("{document}: the part `{name}` was written anew");
        }
    }
    Ok(true)
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
        with_part("<!-- x:end -->\n<!-- x:begin -->\n", "x", "t").expect_err("the marks are in the wrong order");
    }
}
