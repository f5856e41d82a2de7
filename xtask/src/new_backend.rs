//! `cargo xtask new-backend`: writes the crate of a backend that compiles, and fails the suite until its steps are written.

mod lists;
mod name;
mod template;

use std::fs;
use std::path::Path;
use std::process::Command;

use self::name::Name;
use crate::workspace::{root, write};

/// `NAME` writes `crates/NAME` and lists it; `NAME --standalone DIR` writes a crate outside of this repository.
pub(crate) fn run(arguments: &[&str]) -> Result<bool, String> {
    match arguments {
        [name] if !name.starts_with('-') => within(&Name::new(name)?)?,
        [name, "--standalone", folder] => outside(&Name::new(name)?, Path::new(folder))?,
        _ => return Err("usage: cargo xtask new-backend NAME [--standalone DIR]".to_owned()),
    }
    Ok(true)
}

/// Writes a crate of this workspace. Nothing is written unless everything can be.
fn within(name: &Name) -> Result<(), String> {
    let lists = lists::with(name)?;
    write_crate(name, &root().join("crates").join(name.as_str()), &template::of(name, false)?)?;
    for (file, text) in lists {
        write(&root().join(file), &text)?;
        println!("listed in {file}");
    }
    println!("\nIt fails:        cargo xtask conformance {name}");
    println!("How it passes:   CONTRIBUTING.md, \"Add a backend\"");
    Ok(())
}

/// Writes a crate that depends on this checkout.
fn outside(name: &Name, folder: &Path) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|e| format!("the current folder: {e}"))?;
    let folder = here.join(folder);
    write_crate(name, &folder, &template::of(name, true)?)?;
    println!("\nIt fails:        cd {} && cargo test", folder.display());
    println!("How it passes:   {}, \"Add a backend\"", root().join("CONTRIBUTING.md").display());
    Ok(())
}

fn write_crate(name: &Name, folder: &Path, files: &[(String, String)]) -> Result<(), String> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Ok(false) => return Err(format!("{} exists already, and is not empty", folder.display())),
        Err(_) if fs::symlink_metadata(folder).is_err() => {}
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    }
    for (file, text) in files {
        write(&folder.join(file), text)?;
    }
    println!("written to {}: the package {}", folder.display(), name.package());
    // How long the name is decides where lines are broken.
    let roots = ["src/lib.rs", "tests/conformance.rs", "tests/it/main.rs"].map(|file| folder.join(file));
    let roots = roots.iter().filter(|file| file.is_file());
    let formatted = Command::new("rustfmt").args(["--edition", "2024"]).args(roots).status();
    if !formatted.is_ok_and(|status| status.success()) {
        println!("rustfmt did not format it: run `cargo fmt` there");
    }
    Ok(())
}
