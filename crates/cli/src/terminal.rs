use std::fs::File;
use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal as Blocked};
use rustix::process::{Pid, Signal, getpgrp, kill_current_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use crate::child::Child;
use crate::signals::stop_ourselves;

/// Passes the controlling terminal to the command's process group, and takes it back.
///
/// The command gets the terminal when it first asks for it: the kernel stops it then, with SIGTTIN or SIGTTOU. So
/// `leasehold run k -- cmd | less` leaves the terminal to `less`, and `leasehold run k -- vi` works, too.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    given_to: Option<Pid>,
}

impl Terminal {
    /// Handles a command that was stopped: gives it the terminal if it asked for that; otherwise stops this program, too, so
    /// that the shell shows its prompt. When the program continues, so does the command, if `may_go_on` allows it.
    pub(crate) fn command_stopped(&mut self, command: &Child, signal: i32, may_go_on: &dyn Fn() -> bool) {
        let [asks_to_read, asks_to_write, typed] = [Signal::TTIN, Signal::TTOU, Signal::TSTP].map(Signal::as_raw);
        let asks = signal == asks_to_read || signal == asks_to_write;
        if asks && self.give(command.pid()) {
            command.signal(Signal::CONT);
        } else if (asks || signal == typed) && controlling_terminal().is_ok() {
            // The terminal sent the signal to the command alone; the rest of our pipeline has to stop, too.
            self.stop(command, may_go_on, stop_our_job);
        }
        // Any other stop was sent on purpose, and the sender will continue the command.
    }

    /// Handles a stop signal to this program, which the command did not get.
    pub(crate) fn told_to_stop(&mut self, command: &Child, may_go_on: &dyn Fn() -> bool) {
        command.signal(Signal::TSTP);
        self.stop(command, may_go_on, stop_ourselves);
    }

    fn stop(&mut self, command: &Child, may_go_on: &dyn Fn() -> bool, stop: impl FnOnce()) {
        let had_terminal = self.given_to.is_some();
        self.take_back();
        stop();
        if may_go_on() {
            if had_terminal {
                self.give(command.pid());
            }
            command.signal(Signal::CONT);
        }
    }

    /// Gives the terminal to a process group. Returns false if the terminal does not belong to our group.
    fn give(&mut self, group: Pid) -> bool {
        let given = controlling_terminal().and_then(|terminal| {
            let ours = tcgetpgrp(&terminal)? == getpgrp();
            if ours {
                pass(&terminal, group)?;
            }
            Ok(ours)
        });
        let given = given.unwrap_or(false);
        if given {
            self.given_to = Some(group);
        }
        given
    }

    /// Takes the terminal back, unless another process group got it meanwhile.
    fn take_back(&mut self) {
        let Some(group) = self.given_to.take() else { return };
        if let Ok(terminal) = controlling_terminal()
            && tcgetpgrp(&terminal).is_ok_and(|front| front == group)
        {
            // If this fails, the terminal is gone.
            let _ = pass(&terminal, getpgrp());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Stops all of this program's process group, until somebody continues it.
pub(crate) fn stop_our_job() {
    let _ = kill_current_process_group(Signal::STOP);
}

fn controlling_terminal() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// Makes `group` the foreground process group of the terminal. A background process that does this is stopped by SIGTTOU,
/// unless that signal is blocked.
fn pass(terminal: &File, group: Pid) -> io::Result<()> {
    let mut stop = SigSet::empty();
    stop.add(Blocked::SIGTTOU);
    let before = stop.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let passed = tcsetpgrp(terminal, group);
    before.thread_set_mask()?;
    Ok(passed?)
}
