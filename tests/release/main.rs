//! What is published is fit to be published: what the packages contain, and what they depend on.

mod dependencies;
mod image;
mod packages;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A crate that is published.
struct Published {
    name: String,
    folder: PathBuf,
    manifest: String,
}

/// Every crate but the testkit.
fn published() -> Vec<Published> {
    let entries = fs::read_dir(root().join("crates")).expect("the folder of the crates can be read");
    let mut all: Vec<Published> = entries
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| {
            let manifest = read(&entry.path().join("Cargo.toml"));
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a package has a name");
            Published { name: name.trim_matches('"').to_owned(), folder: entry.path(), manifest }
        })
        .filter(|package| !package.manifest.contains("publish = false"))
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(all.len() >= 14, "too few crates were found");
    all
}

/// What cargo prints. It needs the network only for packages that no build here has fetched.
fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root()).output();
    let output = output.expect("cargo can be started");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints text")
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the package is in a folder of the workspace").to_path_buf()
}
