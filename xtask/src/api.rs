//! `cargo xtask api`: the public surface of each published library, in its `api.txt`, where who changes it sees it, and a review does.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::process::Command;

use public_api::Builder;

use crate::command::{passes, succeed};
use crate::workspace::{cargo, libraries, read, root, target, write};

/// The format of rustdoc's JSON that the library here reads. Other compilers write others.
const FORMAT: u64 = 57;

/// The program that this one runs in place of, when cargo calls it as rustdoc.
const AS_RUSTDOC: &str = "LEASEHOLD_XTASK_AS_RUSTDOC";

/// Documents the workspace, as JSON in place of pages: lints look at both.
pub(crate) fn document() -> Command {
    let mut cargo = cargo();
    cargo.args(["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-Dwarnings");
    cargo.env(AS_RUSTDOC, env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into()));
    cargo.env("RUSTDOC", env::current_exe().unwrap_or_default());
    cargo
}

/// Runs rustdoc, if cargo called this program for that. JSON is not stable, and the variable that permits it is for rustdoc alone:
/// crates that look at it would be compiled anew by each cargo that has it, and each that has not.
pub(crate) fn as_rustdoc() -> Option<Result<bool, String>> {
    let mut rustdoc = Command::new(env::var_os(AS_RUSTDOC)?);
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--crate-name") {
        rustdoc.args(["-Zunstable-options", "--output-format=json"]).env("RUSTC_BOOTSTRAP", "1");
    }
    Some(passes(rustdoc.args(arguments)))
}

/// The lines by which the libraries, which have been documented, differ from what their files say. `None`: this compiler does not say
/// what they have.
pub(crate) fn compare() -> Result<Option<Vec<String>>, String> {
    let mut other = Vec::new();
    for library in libraries()? {
        let Some(is) = surface(&library.name)? else { return Ok(None) };
        let was = read(&root().join(&library.folder).join("api.txt")).unwrap_or_default();
        let (lines, before) = (is.lines().collect::<BTreeSet<_>>(), was.lines().collect::<BTreeSet<_>>());
        other.extend(before.difference(&lines).map(|line| format!("- {line}")));
        other.extend(lines.difference(&before).map(|line| format!("+ {line}")));
    }
    Ok(Some(other))
}

/// Writes the surfaces into the files.
pub(crate) fn write_all() -> Result<bool, String> {
    succeed(&mut document())?;
    for library in libraries()? {
        let is = surface(&library.name)?.ok_or("this compiler writes another form of JSON")?;
        write(&root().join(&library.folder).join("api.txt"), &is)?;
    }
    Ok(true)
}

/// A line for each public item of a library that has been documented. `None`: another compiler did it.
fn surface(package: &str) -> Result<Option<String>, String> {
    let json = target().join("doc").join(format!("{}.json", package.replace('-', "_")));
    let documented: serde_json::Value = serde_json::from_str(&read(&json)?).map_err(|failure| failure.to_string())?;
    if documented["format_version"].as_u64() != Some(FORMAT) {
        return Ok(None);
    }
    let builder = Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true);
    let api = builder.omit_auto_derived_impls(true).build().map_err(|failure| failure.to_string())?;
    Ok(Some(api.to_string()))
}
