//! `cargo xtask release`: whether a release could be made, beyond what `cargo xtask check` says: the packages, and the public interface.

use std::process::Command;

use crate::command::printed;
use crate::steps::Steps;
use crate::tools;
use crate::workspace::{cargo, git, libraries, root};

/// All published crates are the default members. That the packages compile is part of `RELEASING.md`.
const PACKAGE: &[&str] = &["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"];

const SEMVER_VERSION: &str = "0.51.0";

pub(crate) fn run(install: bool) -> bool {
    let mut steps = Steps::default();
    if install {
        steps.note("install", install_tools());
    }
    self::steps(&mut steps);
    steps.end()
}

pub(crate) fn steps(steps: &mut Steps) {
    steps.run("package", cargo().args(PACKAGE));
    interface(steps);
}

/// `cargo-semver-checks` is compiled only if there is a release to compare with.
fn install_tools() -> Result<(), String> {
    if latest_release()?.is_some() && tools::installed("cargo-semver-checks").is_none() {
        tools::compile("cargo-semver-checks", SEMVER_VERSION, &["--debug"])?;
    }
    Ok(())
}

/// Whether the next version may be what `Cargo.toml` says, by what users of the latest release depend on.
fn interface(steps: &mut Steps) {
    let (release, libraries) = match latest_release().and_then(|release| Ok((release, libraries()?))) {
        Ok((Some(release), libraries)) => (release, libraries),
        Ok((None, _)) => return steps.skip("semver", "there is no release yet to compare with, that is no tag `v…`"),
        Err(why) => return steps.note("semver", Err(why)),
    };
    let Some(program) = tools::installed("cargo-semver-checks") else {
        return steps.skip("semver", "there is no cargo-semver-checks: install with `cargo xtask release --install`");
    };
    let mut semver = Command::new(program);
    semver.args(["semver-checks", "--all-features", "--baseline-rev", &release]).current_dir(root());
    steps.run("semver", semver.args(libraries.iter().flat_map(|library| ["-p", &library.name])));
}

/// The newest tag `v…` from which this commit comes.
fn latest_release() -> Result<Option<String>, String> {
    let mut git = git(&root());
    let tags = printed(git.args(["tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname"]))?;
    Ok(tags.lines().next().map(str::to_owned))
}
