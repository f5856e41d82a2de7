//! A program on a terminal of its own, with a screen that tests can read.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

pub use vt100::{Cell, Color, Screen};

use crate::{Deadline, KilledOnDrop, PATIENCE};

/// A program whose input, output and errors are a terminal, which is its controlling terminal. It is killed with this value.
pub struct OnTerminal {
    child: KilledOnDrop,
    /// What a person has in front: writing to it types, reading it is what the terminal shows.
    master: File,
    /// The program's side. It stays open here, so that the settings can be read after the program has ended.
    slave: File,
    shown: Arc<Mutex<vt100::Parser>>,
}

impl fmt::Debug for OnTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnTerminal").field("child", &self.child).finish_non_exhaustive()
    }
}

impl OnTerminal {
    /// Starts the command on a terminal of this many columns and rows. `None` if there is no `setsid(1)` of util-linux, which
    /// makes the terminal the controlling one.
    pub fn start(command: &Command, columns: u16, rows: u16) -> Option<Self> {
        let (master, slave) = open().unwrap_or_else(|error| panic!("no pseudo-terminal: {error}"));
        let end = || Stdio::from(slave.try_clone().unwrap_or_else(|error| panic!("{error}")));
        let mut with_terminal = Command::new("setsid");
        with_terminal.arg("--ctty").arg(command.get_program()).args(command.get_args());
        with_terminal.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => with_terminal.env(name, value),
                None => with_terminal.env_remove(name),
            };
        }
        set_size(&master, columns, rows);
        let child = KilledOnDrop::spawn(with_terminal.stdin(end()).stdout(end()).stderr(end())).ok()?;
        let shown = Arc::new(Mutex::new(vt100::Parser::new(size(rows), size(columns), 0)));
        let (mut output, sees) = (master.try_clone().ok()?, Arc::clone(&shown));
        // It ends with the terminal, when the last of its program's side is closed.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut buffer) {
                locked(&sees).process(&buffer[..n]);
            }
        });
        Some(Self { child, master, slave, shown })
    }

    /// Types these bytes.
    pub fn type_in(&mut self, keys: impl AsRef<[u8]>) {
        self.master.write_all(keys.as_ref()).unwrap_or_else(|error| panic!("typing: {error}"));
    }

    /// The text on the screen.
    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// The screen, with colours, cursor and modes.
    pub fn screen(&self) -> Screen {
        locked(&self.shown).screen().clone()
    }

    /// Waits until the screen is as expected, and returns what was made of it.
    #[track_caller]
    pub fn until<T>(&self, what: &str, seen: impl FnMut(&Screen) -> Option<T>) -> T {
        until(&self.shown, what, seen)
    }

    /// Waits until this text is on the screen.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text).then_some(()));
    }

    /// Waits until this text is not on the screen any more.
    #[track_caller]
    pub fn shows_no(&self, text: &str) {
        self.until(&format!("no {text}"), |screen| (!screen.contents().contains(text)).then_some(()));
    }

    /// The settings of the terminal, as text: those of the line, of input and of output.
    pub fn settings(&self) -> String {
        let Termios { input_modes, output_modes, local_modes, control_modes, .. } =
            tcgetattr(&self.slave).unwrap_or_else(|error| panic!("the terminal has no settings: {error}"));
        format!("{input_modes:?} {output_modes:?} {local_modes:?} {control_modes:?}")
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap_or_else(|error| panic!("{signal:?}: {error}"));
    }

    /// Waits until the program has ended.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let child = &mut self.child;
        until(&self.shown, "the program ends", |_| child.try_wait().ok().flatten())
    }
}

/// Waits until `seen` answers, and shows the screen if it does not within a minute.
#[track_caller]
#[allow(clippy::disallowed_methods, reason = "it polls with a deadline")]
fn until<T>(shown: &Mutex<vt100::Parser>, what: &str, mut seen: impl FnMut(&Screen) -> Option<T>) -> T {
    let deadline = Deadline::after(PATIENCE);
    loop {
        let parser = locked(shown);
        if let Some(seen) = seen(parser.screen()) {
            return seen;
        }
        assert!(!deadline.is_over(), "not within a minute: {what}; the screen is\n{}", parser.screen().contents());
        drop(parser);
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn open() -> io::Result<(File, File)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master: OwnedFd = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let name = name.to_str().map_err(io::Error::other)?;
    // Without NOCTTY it would become the terminal of the tests themselves.
    let nobodys = i32::try_from(OFlags::NOCTTY.bits()).map_err(io::Error::other)?;
    let slave = OpenOptions::new().read(true).write(true).custom_flags(nobodys).open(name)?;
    Ok((File::from(master), slave))
}

fn set_size(master: impl AsFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap_or_else(|error| panic!("the size of the terminal: {error}"));
}

fn size(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).unwrap_or(NonZeroU16::MIN)
}

fn locked(shown: &Mutex<vt100::Parser>) -> MutexGuard<'_, vt100::Parser> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
