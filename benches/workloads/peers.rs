//! Locks in other languages, if they are installed: each runs in a process of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::job::{Job, Shape};
use crate::machine;

/// The commands that install the peers.
const INSTALL: &str = "npm install --prefix benches/peers; python3 -m venv benches/peers/.venv && \
                       benches/peers/.venv/bin/pip install -r benches/peers/requirements.txt";

/// A lock in another language.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// The program of its language, the argument that has it run code, and the code that needs the lock.
    program: &'static str,
    asked: [&'static str; 2],
    script: &'static str,
    /// The commands that its client sends. None of its scripts runs any of these.
    pub(crate) sends: &'static [&'static str],
}

const fn node(name: &'static str, needs: &'static str, sends: &'static [&'static str]) -> Peer {
    Peer { name, program: "node", asked: ["-e", needs], script: "peer.mjs", sends }
}

const fn python(name: &'static str, needs: &'static str, sends: &'static [&'static str]) -> Peer {
    Peer { name, program: "python3", asked: ["-c", needs], script: "peer.py", sends }
}

const ALL: [Peer; 4] = [
    node("redis-semaphore", "require.resolve('redis-semaphore')", &["set", "eval", "evalsha"]),
    node("redlock", "require.resolve('redlock')", &["eval", "evalsha"]),
    python("redis-py", "import redis", &["set", "evalsha"]),
    python("pottery", "import pottery", &["set", "evalsha", "eval"]),
];

/// The peers that are installed, and a note that names the others.
pub(crate) fn found() -> (Vec<Peer>, Option<String>) {
    let (found, absent): (Vec<Peer>, Vec<Peer>) = ALL.into_iter().partition(Peer::is_installed);
    let names: Vec<&str> = absent.iter().map(|peer| peer.name).collect();
    let note = || format!("peers that are not installed: {} ({INSTALL})", names.join(", "));
    (found, (!names.is_empty()).then(note))
}

impl Peer {
    pub(crate) fn job(&self, url: String, shape: Shape) -> Job {
        let words = [self.program(), folder().join(self.script), self.name.into()];
        Job::of_other(words.map(|word| word.display().to_string()).to_vec(), url, shape)
    }

    fn program(&self) -> PathBuf {
        let own = folder().join(".venv/bin").join(self.program);
        if own.exists() { own } else { self.program.into() }
    }

    fn is_installed(&self) -> bool {
        let mut command = Command::new(self.program());
        command.current_dir(folder()).args(self.asked).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

fn folder() -> PathBuf {
    machine::package().join("peers")
}
