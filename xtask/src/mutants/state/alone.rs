//! The state machine in a package of its own, with the words of the core that it knows: built in seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::{cargo, root, target};

/// The modules of the core that the state machine uses, each by all of its public names.
const WORDS: [&str; 11] = [
    "backend",
    "capabilities",
    "error",
    "holder",
    "key",
    "loss",
    "mode",
    "options",
    "printable",
    "token",
    "engine/local_handoff",
];

/// The number of the mutant that lives, if one does.
const WHICH: &str = "
pub(crate) fn mutant() -> usize {
    static WHICH: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| {
        std::env::var(\"LEASEHOLD_MUTANT\").map_or(usize::MAX, |number| number.parse().unwrap())
    });
    *WHICH
}
";

/// Where its files are, in the core and in its own package.
pub(super) const STATE: &str = "src/engine/state";

#[derive(Debug)]
pub(super) struct Alone(pub(super) PathBuf);

impl Alone {
    pub(super) fn create() -> Result<Self, String> {
        let alone = Self(target().join("mutants/state"));
        let core = root().join("crates/core");
        let mut library = String::from(
            "#![allow(warnings, arithmetic_overflow, unconditional_panic)]\npub mod clock;\nmod engine;\n",
        );
        for word in WORDS.iter().chain(&["clock"]) {
            let text = read(&core.join("src").join(word).with_extension("rs"))?;
            // Their own tests are no business of the state's.
            let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
            alone.write(&format!("src/{word}.rs"), text)?;
            if !word.contains('/') && *word != "clock" {
                library.extend(["mod ", word, ";\npub use ", word, "::*;\n"]);
            }
        }
        alone.write("src/lib.rs", &(library + "pub use engine::HandOver;\npub use clock::Clock;\n" + WHICH))?;
        alone.write("src/engine/mod.rs", "mod local_handoff;\nmod state;\npub use local_handoff::HandOver;\n")?;
        // What is gone in the core is gone here.
        let _ = fs::remove_dir_all(alone.0.join(STATE));
        for folder in ["", "search", "tests"] {
            for name in sources(&core.join(STATE).join(folder))? {
                let path = Path::new(STATE).join(folder).join(name);
                alone.write(path.to_str().unwrap_or_default(), &read(&core.join(&path))?)?;
            }
        }
        alone.write("Cargo.toml", &manifest(&read(&core.join("Cargo.toml"))?, &read(&root().join("Cargo.toml"))?))?;
        alone.write("Cargo.lock", &read(&root().join("Cargo.lock"))?)?;
        Ok(alone)
    }

    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        read(&self.0.join(name))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.0.join(name);
        let folder = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|failure| format!("{}: {failure}", path.display()))
    }

    /// What the compiler says, with an error a line, and the program of the tests, if there is one.
    pub(super) fn build(&self) -> Result<(String, Option<PathBuf>), String> {
        let built = self
            .cargo(&["test", "--lib", "--no-run", "--message-format=json-diagnostic-short"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .map_err(|failure| format!("cargo test --no-run: {failure}"))?;
        let said = String::from_utf8_lossy(&built.stdout);
        let program = said.lines().filter_map(super::super::executable).next_back();
        let errors = String::from_utf8_lossy(&built.stderr).into_owned() + &said;
        Ok((errors, program.filter(|_| built.status.success())))
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo();
        // Here it pays to keep what an earlier build knows.
        command.args(arguments).current_dir(&self.0).env("CARGO_INCREMENTAL", "1");
        command.env("CARGO_TARGET_DIR", self.0.join("target"));
        command
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|failure| format!("{}: {failure}", path.display()))
}

/// The names of the Rust files in a folder.
fn sources(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|failure| format!("{}: {failure}", folder.display()))?;
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "rs")).collect())
}

/// The core's package as its own workspace, without what only other tests of it need.
fn manifest(core: &str, workspace: &str) -> String {
    let package = core.split("\n[dev-dependencies]").next().unwrap_or_default();
    let rest: Vec<_> = workspace.lines().filter(|line| !line.contains("members = ")).collect();
    format!("{package}\n[lib]\ndoctest = false\n\n{}\n", rest.join("\n").replace("\"line-tables-only\"", "false"))
}
