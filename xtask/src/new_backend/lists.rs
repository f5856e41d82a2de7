//! The lists outside of its folder in which a backend of this workspace is named.

use std::fs;

use super::name::Name;
use crate::workspace::root;

const WORKSPACE: &str = "Cargo.toml";
const LIBRARY: &str = "crates/leasehold/Cargo.toml";
const BUILT_IN: &str = "crates/leasehold/src/backends.rs";
const PROGRAM: &str = "crates/cli/Cargo.toml";

/// The files with these lists, and what they are with the backend in them.
pub(crate) fn with(name: &Name) -> Result<Vec<(&'static str, String)>, String> {
    [WORKSPACE, LIBRARY, BUILT_IN, PROGRAM]
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?;
            let listed = listed(file, &text, name);
            listed.map(|text| (file, text)).map_err(|line| format!("{file} has no line that begins with `{line}`"))
        })
        .collect()
}

/// The text of one of the files with the backend in it, or the line that it lacks.
fn listed(file: &str, text: &str, name: &Name) -> Result<String, &'static str> {
    let (package, module) = (name.package(), name.module());
    match file {
        WORKSPACE => {
            let path = format!("{package} = {{ path = \"crates/{name}\", version = \"{}\" }}", version(text)?);
            let text = after(text, "leasehold-core = ", &path)?;
            // The pattern of the default members leaves out what begins like `testkit`.
            let left_out = name.as_str().starts_with('t');
            if left_out { within(&text, "default-members = [", &format!("\"crates/{name}\"")) } else { Ok(text) }
        }
        LIBRARY => {
            let text = after(text, "default = ", &feature(name, &format!("dep:{package}")))?;
            after(&text, "leasehold-core.workspace", &format!("{package} = {{ workspace = true, optional = true }}"))
        }
        PROGRAM => {
            let text = within(text, "default = [", &format!("\"{name}\""))?;
            after(&text, "default = ", &feature(name, &format!("leasehold/{name}")))
        }
        _ => {
            let line = format!("    {module} = leasehold_{module}, \"{name}\", [\"{name}\"];");
            // The first line that begins so ends the list.
            let (end, _) = place(text, "}")?;
            let (before, rest) = text.split_at(end);
            Ok(format!("{before}{line}\n{rest}"))
        }
    }
}

fn feature(name: &Name, switches_on: &str) -> String {
    format!("## `{name}:`.\n{name} = [\"{switches_on}\"]")
}

fn version(workspace: &str) -> Result<&str, &'static str> {
    let version = workspace.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.ok_or("version = ")
}

/// The text with a line more, behind the first that begins so.
fn after(text: &str, begins: &'static str, line: &str) -> Result<String, &'static str> {
    let (at, end) = place(text, begins)?;
    let (before, rest) = text.split_at(at + end);
    Ok(format!("{before}\n{line}{rest}"))
}

/// The text with a value more at the end of the array in the first line that begins so.
fn within(text: &str, begins: &'static str, value: &str) -> Result<String, &'static str> {
    let (at, end) = place(text, begins)?;
    let close = text.get(at..at + end).and_then(|line| line.rfind(']')).ok_or(begins)?;
    let (before, rest) = text.split_at(at + close);
    Ok(format!("{before}, {value}{rest}"))
}

/// Where the first line begins that begins so, and how long it is.
fn place(text: &str, begins: &'static str) -> Result<(usize, usize), &'static str> {
    let at = if text.starts_with(begins) { Some(0) } else { text.find(&format!("\n{begins}")).map(|at| at + 1) };
    let at = at.ok_or(begins)?;
    let rest = text.get(at..).unwrap_or_default();
    Ok((at, rest.find('\n').unwrap_or(rest.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_behind_another_and_a_value_to_the_end_of_its_array() {
        let text = "a = 1\nb = [\"x\"]\nc = 3";
        assert_eq!(after(text, "a = ", "new").unwrap(), "a = 1\nnew\nb = [\"x\"]\nc = 3");
        assert_eq!(after(text, "c = ", "new").unwrap(), "a = 1\nb = [\"x\"]\nc = 3\nnew");
        assert_eq!(within(text, "b = [", "\"y\"").unwrap(), "a = 1\nb = [\"x\", \"y\"]\nc = 3");
        assert_eq!(within(text, "a = ", "\"y\""), Err("a = "), "it is no array");
        assert_eq!(after(text, "x", "new"), Err("x"), "no line begins so");
    }
}
