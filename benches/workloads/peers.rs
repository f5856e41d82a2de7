//! Locks in other languages, if they are installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::job::{Job, Shape};
use crate::machine;

/// The commands that install the peers.
pub(crate) const INSTALL: &str = "npm install --prefix benches/peers; python3 -m venv benches/peers/.venv && \
                                  benches/peers/.venv/bin/pip install -r benches/peers/requirements.txt";

/// A lock in another language, which runs in a process of its own.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    language: Language,
    /// The commands that its client sends. None of its scripts runs any of these.
    pub(crate) sends: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Node,
    Python,
}

const ALL: [Peer; 4] = [
    Peer { name: "redis-semaphore", language: Language::Node, sends: &["set", "eval", "evalsha"] },
    Peer { name: "redlock", language: Language::Node, sends: &["eval", "evalsha"] },
    Peer { name: "redis-py", language: Language::Python, sends: &["set", "evalsha"] },
    Peer { name: "pottery", language: Language::Python, sends: &["set", "evalsha", "eval"] },
];

/// The peers that are installed, and the names of the others.
pub(crate) fn found() -> (Vec<Peer>, Vec<&'static str>) {
    let (found, absent): (Vec<Peer>, Vec<Peer>) = ALL.into_iter().partition(Peer::is_installed);
    (found, absent.into_iter().map(|peer| peer.name).collect())
}

impl Peer {
    pub(crate) fn job(&self, url: &str, shape: Shape) -> Job {
        let script = match self.language {
            Language::Node => "peer.mjs",
            Language::Python => "peer.py",
        };
        let words = [self.program(), folder().join(script), self.name.into()];
        Job::of_other(words.map(|word| word.display().to_string()).to_vec(), url, shape)
    }

    fn program(&self) -> PathBuf {
        let own = folder().join(".venv/bin/python");
        match self.language {
            Language::Node => "node".into(),
            Language::Python if own.exists() => own,
            Language::Python => "python3".into(),
        }
    }

    fn is_installed(&self) -> bool {
        let mut command = Command::new(self.program());
        match self.language {
            Language::Node => command.current_dir(folder()).args(["-e", &format!("require.resolve('{}')", self.name)]),
            Language::Python => {
                command.args(["-c", if self.name == "pottery" { "import pottery" } else { "import redis" }])
            }
        };
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

fn folder() -> PathBuf {
    machine::package().join("peers")
}
