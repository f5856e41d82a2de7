//! `cargo xtask api`: the public surface of each published library, in its `api.txt`, where who changes it sees it, and a review does.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use public_api::Builder;

use crate::workspace::{cargo, libraries, target};

/// The format of rustdoc's JSON that the library here reads. Other compilers write others.
const FORMAT: u64 = 57;

/// The program that this one runs in place of, when cargo calls it as rustdoc.
const AS_RUSTDOC: &str = "LEASEHOLD_XTASK_AS_RUSTDOC";

/// What the libraries have, and what their files say.
pub(crate) enum Surface {
    Same,
    /// The lines that differ.
    Other(String),
    /// The compiler is another one, and says so.
    Unknown(String),
}

/// Documents the workspace, as JSON in place of pages: lints look at both.
pub(crate) fn document() -> Result<Command, String> {
    let this = env::current_exe().map_err(|failure| failure.to_string())?;
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let mut cargo = cargo();
    cargo.args(["doc", "--workspace", "--no-deps", "--all-features"]);
    cargo.env("RUSTDOCFLAGS", "-Dwarnings").env("RUSTDOC", this).env(AS_RUSTDOC, rustdoc);
    Ok(cargo)
}

/// Runs rustdoc, if cargo called this program for that. JSON is not stable, and the variable that permits it is for rustdoc alone:
/// crates that look at it would be compiled anew by each cargo that has it, and each that has not.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    let mut rustdoc = Command::new(env::var_os(AS_RUSTDOC)?);
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--crate-name") {
        rustdoc.args(["-Zunstable-options", "--output-format=json"]).env("RUSTC_BOOTSTRAP", "1");
    }
    let ended = rustdoc.args(arguments).status();
    Some(if ended.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares the surfaces with the files.
pub(crate) fn compare() -> Result<Surface, String> {
    let mut other = Vec::new();
    for (package, folder) in libraries()? {
        let Some(is) = surface(&package)? else {
            return Ok(Surface::Unknown(format!("of this compiler's JSON, only format {FORMAT} is understood")));
        };
        let was = fs::read_to_string(folder.join("api.txt")).unwrap_or_default();
        let (lines, before) = (is.lines().collect::<BTreeSet<_>>(), was.lines().collect::<BTreeSet<_>>());
        other.extend(before.difference(&lines).map(|line| format!("- {line}")));
        other.extend(lines.difference(&before).map(|line| format!("+ {line}")));
    }
    Ok(if other.is_empty() { Surface::Same } else { Surface::Other(other.join("\n")) })
}

/// Writes the surfaces into the files.
pub(crate) fn write() -> Result<ExitCode, String> {
    let documented = document()?.status().map_err(|failure| format!("cargo doc: {failure}"))?;
    if !documented.success() {
        return Err("the documentation has faults".to_owned());
    }
    for (package, folder) in libraries()? {
        let is = surface(&package)?.ok_or("this compiler writes another form of JSON")?;
        let file = folder.join("api.txt");
        fs::write(&file, is).map_err(|failure| format!("{}: {failure}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each public item of a library that has been documented. `None`: another compiler did it.
fn surface(package: &str) -> Result<Option<String>, String> {
    let json: PathBuf = target().join("doc").join(format!("{}.json", package.replace('-', "_")));
    let text = fs::read_to_string(&json).map_err(|failure| format!("{}: {failure}", json.display()))?;
    let read: serde_json::Value = serde_json::from_str(&text).map_err(|failure| failure.to_string())?;
    if read["format_version"].as_u64() != Some(FORMAT) {
        return Ok(None);
    }
    let builder = Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true);
    let api = builder.omit_auto_derived_impls(true).build().map_err(|failure| failure.to_string())?;
    Ok(Some(api.to_string()))
}
