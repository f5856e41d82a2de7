//! The library that is preloaded into clients and servers: it moves their wall clock, slows their disk down, and fills it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use leasehold_testkit::launch::Settings;

/// The compiled library, in the folder of a run.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) folder: PathBuf,
    library: PathBuf,
}

/// What the library does in one process.
#[derive(Clone, Debug)]
pub(crate) struct Shim {
    library: PathBuf,
    numbers: PathBuf,
}

/// The numbers by which the library is told what to do, and tells what it did: in the order of `shim.c`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// How far the wall clock is ahead, in milliseconds.
    AheadMs,
    /// How much longer an fsync takes.
    SlowMicros,
    /// How many times an fsync was slow.
    Slowed,
    /// Which writes a full disk does not take: [`WRITES_AT_A_PLACE`] or [`ALL_WRITES`].
    Full,
    /// How many times something was not taken.
    Refused,
}

/// A client's history is appended to, and goes on.
pub(crate) const WRITES_AT_A_PLACE: i64 = 1;
pub(crate) const ALL_WRITES: i64 = 2;

impl Library {
    /// Without it, clocks could not be moved and disks not be filled: a run would show less than it says.
    pub(crate) fn build(folder: &Path) -> Result<Self, String> {
        let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
        fs::write(&source, include_str!("../nemesis/shim.c")).map_err(|e| format!("{}: {e}", source.display()))?;
        match Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).args([&library, &source]).status() {
            Ok(status) if status.success() => Ok(Self { folder: folder.to_owned(), library }),
            Ok(status) => Err(format!("cc: {status}")),
            Err(error) => Err(format!("cc: {error}: clocks and disks need a C compiler; install one, such as gcc")),
        }
    }

    /// For the process of this name.
    pub(crate) fn shim(&self, name: &str) -> Result<Shim, String> {
        let numbers = self.folder.join(format!("{name}.shim"));
        // The server may run as another user.
        let share = |()| fs::set_permissions(&numbers, Permissions::from_mode(0o666));
        fs::write(&numbers, [0; 40]).and_then(share).map_err(|e| format!("{}: {e}", numbers.display()))?;
        Ok(Shim { library: self.library.clone(), numbers })
    }
}

impl Shim {
    /// The environment of the process.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), ("SHIM", &self.numbers)]
    }

    /// With these arguments beside it.
    pub(crate) fn settings(&self, arguments: &[&str]) -> Settings {
        let mut settings = Settings::arguments(arguments);
        let variables = self.variables().into_iter().map(|(name, value)| format!("{name}={}", value.display()));
        settings.variables.extend(variables);
        settings
    }

    pub(crate) fn get(&self, number: Number) -> i64 {
        let mut bytes = [0; 8];
        let read = File::open(&self.numbers).and_then(|file| file.read_exact_at(&mut bytes, number as u64 * 8));
        read.map_or(0, |()| i64::from_ne_bytes(bytes))
    }

    pub(crate) fn set(&self, number: Number, value: i64) {
        let file = File::options().write(true).open(&self.numbers);
        let written = file.and_then(|file| file.write_all_at(&value.to_ne_bytes(), number as u64 * 8));
        written.unwrap_or_else(|error| panic!("{}: {error}", self.numbers.display()));
    }
}

/// Has a number this value in these processes for so long. Answers how much another one, a count, grew meanwhile.
pub(crate) fn set_for(lasts: Duration, shims: &[Shim], (number, value): (Number, i64), count: Number) -> u64 {
    let counted = || shims.iter().map(|shim| shim.get(count)).sum::<i64>();
    let set = |value| {
        for shim in shims {
            shim.set(number, value);
        }
    };
    let before = counted();
    set(value);
    thread::sleep(lasts);
    set(0);
    (counted() - before).unsigned_abs()
}
