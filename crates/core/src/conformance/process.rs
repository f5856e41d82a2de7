//! Helper processes, for cases with kill -9 and SIGSTOP.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the helper talks to its parent")]

use std::io::BufRead;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::subject::Subject;
use super::verdict::{Failure, ensure};
use crate::{Clock, LocalHandoff, LockKey, LockOptions, Wait};

const ROLE: &str = "LEASEHOLD_CONFORMANCE_HELPER";

/// What a helper process does: it holds a key, and answers questions until its input ends.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) namespace: String,
    pub(super) key: String,
    pub(super) ttl: Duration,
}

impl Role {
    pub(super) fn from_environment() -> Option<Self> {
        let text = std::env::var(ROLE).ok()?;
        let mut parts = text.splitn(3, ' ');
        let ttl = Duration::from_millis(parts.next()?.parse().ok()?);
        Some(Self { ttl, namespace: parts.next()?.into(), key: parts.next()?.into() })
    }

    fn to_text(&self) -> String {
        format!("{} {} {}", self.ttl.as_millis(), self.namespace, self.key)
    }
}

/// Runs the helper.
pub(super) fn play(role: &Role, subject: &dyn Subject) -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let held = runtime.block_on(async {
        let client = subject.client(&role.namespace, Clock::system(), LocalHandoff::new()).await?;
        let options = LockOptions::new().ttl(role.ttl).wait(Wait::UpTo(Duration::from_secs(20)));
        let guard = client.acquire(&LockKey::new(role.key.as_str())?, &options).await?;
        Ok::<_, crate::Error>(guard.map(|guard| (guard, client)))
    });
    let (guard, _contender) = match held {
        Ok(Some(held)) => held,
        Ok(None) => {
            println!("busy");
            return ExitCode::FAILURE;
        }
        Err(error) => {
            println!("failed {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("holds {}", guard.fencing_token().map_or(0, u64::from));
    for _question in std::io::stdin().lock().lines() {
        println!("{}", if guard.is_held() { "held".to_owned() } else { format!("lost {:?}", guard.loss()) });
    }
    ExitCode::SUCCESS
}

/// A helper process that holds a key, as its parent sees it. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Holder {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    pub(super) token: u64,
}

impl Holder {
    /// Starts a helper, with these environment variables.
    pub(super) async fn start(environment: Vec<(String, String)>, role: &Role) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(&program)
            .env(ROLE, role.to_text())
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                Failure(format!("{} cannot be started as a helper process: {error}", program.display()))
            })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure("the helper has no pipes".into()));
        };
        let mut holder = Self { child, input, output: BufReader::new(output).lines(), token: 0 };
        let first = holder.line().await?;
        let token = first.strip_prefix("holds ").and_then(|token| token.parse().ok());
        holder.token = token.ok_or_else(|| Failure(format!("the helper said {first:?}")))?;
        Ok(holder)
    }

    /// Asks the helper whether it still holds its lock.
    pub(super) async fn ask(&mut self) -> Result<String, Failure> {
        self.input.write_all(b"?\n").await?;
        self.input.flush().await?;
        self.line().await
    }

    pub(super) fn stop(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)
    }

    pub(super) fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// Kills the helper with SIGKILL, so that it cannot release anything.
    pub(super) async fn kill(mut self) -> Result<(), Failure> {
        self.signal(Signal::KILL)?;
        let status = self.child.wait().await?;
        ensure!(!status.success(), "the helper outlived its SIGKILL");
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(kill_process(pid.ok_or_else(|| Failure("the helper has ended".into()))?, signal)?)
    }

    async fn line(&mut self) -> Result<String, Failure> {
        self.output.next_line().await?.ok_or_else(|| Failure("the helper ended".into()))
    }
}
