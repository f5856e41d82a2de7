//! Programs as processes, what they print, and what they answer over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use leasehold_testkit::{KilledOnDrop, PATIENCE, eventually_some};
use rustix::process::{Pid, Signal, kill_process};

/// A program that runs. It is killed when this is dropped.
pub(crate) struct Running {
    process: KilledOnDrop,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = KilledOnDrop::spawn(&mut command).unwrap_or_else(|error| panic!("{program}: {error}"));
        let (tell, lines) = mpsc::channel();
        let (output, errors) = (process.stdout.take().expect("a pipe"), process.stderr.take().expect("a pipe"));
        for pipe in [Box::new(output) as Box<dyn Read + Send>, Box::new(errors)] {
            let tell = tell.clone();
            // It ends with the process.
            thread::spawn(move || {
                BufReader::new(pipe).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
            });
        }
        Self { process, lines }
    }

    /// The next line that the program prints.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the program prints nothing more"))
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("a child").is_none()
    }

    /// Asks the program to end.
    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("it runs");
    }

    /// The rest of what the program prints until it ends well.
    pub(crate) fn rest(mut self) -> Vec<String> {
        let status = eventually_some("the program ends", || self.process.try_wait().expect("a child"));
        let lines: Vec<String> = self.lines.iter().collect();
        assert!(status.success(), "{status}: {lines:?}");
        lines
    }
}

/// Runs so many of them at the same time, and gives what each prints.
pub(crate) fn all_of(times: usize, program: &str, arguments: &[&str]) -> Vec<String> {
    let running: Vec<Running> = (0..times).map(|_| Running::start(program, arguments)).collect();
    running.into_iter().map(|program| program.rest().join("\n")).collect()
}

/// Sends a request: `GET /path`.
pub(crate) fn ask(address: &str, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the program accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let head = format!("{request} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the program reads");
    stream
}

/// The status and the body of the answer.
pub(crate) fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{head}"));
    (status, body.to_owned())
}
