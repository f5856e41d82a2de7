use std::fs::File;
use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal as Blocked};
use rustix::process::{Pid, Signal, getpgrp, kill_current_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use crate::child::Child;
use crate::signals::stop_ourselves;

/// The controlling terminal, and whether the command's process group has it.
///
/// The command gets the terminal when it first asks for it (the kernel stops it then, with SIGTTIN or SIGTTOU): so
/// that `leasehold run k -- cmd | less` leaves it to `less`, and `leasehold run k -- vi` works all the same.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    given_to: Option<Pid>,
}

impl Terminal {
    /// The command was stopped: gives it the terminal if that is what it waits for, else stops with it, so that the
    /// shell gets its prompt. It goes on afterwards if it still may.
    pub(crate) fn command_stopped(&mut self, command: &Child, signal: i32, may_go_on: &dyn Fn() -> bool) {
        let [asks_to_read, asks_to_write, typed] = [Signal::TTIN, Signal::TTOU, Signal::TSTP].map(Signal::as_raw);
        let asks = signal == asks_to_read || signal == asks_to_write;
        if asks && self.give(command.pid()) {
            command.signal(Signal::CONT);
        } else if (asks || signal == typed) && controlling_terminal().is_ok() {
            // The terminal told the command alone; what else is in our pipeline has to stop too.
            self.stop(command, may_go_on, stop_our_job);
        }
        // Any other stop is somebody's who knows what he does, and who will continue it.
    }

    /// We were told to stop, and the command was not.
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

    /// Gives the terminal to a group, if it is ours to give. False if it is not.
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

    /// Takes it back, unless somebody else has got it meanwhile.
    fn take_back(&mut self) {
        let Some(group) = self.given_to.take() else { return };
        if let Ok(terminal) = controlling_terminal()
            && tcgetpgrp(&terminal).is_ok_and(|front| front == group)
        {
            // Where this fails the terminal is gone, and nobody can want it back.
            let _ = pass(&terminal, getpgrp());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

fn stop_our_job() {
    let _ = kill_current_process_group(Signal::STOP);
}

fn controlling_terminal() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// Makes `group` the one that the terminal listens to. A group in the background that does so is stopped, unless the
/// signal for it is blocked.
fn pass(terminal: &File, group: Pid) -> io::Result<()> {
    let mut stop = SigSet::empty();
    stop.add(Blocked::SIGTTOU);
    let before = stop.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let passed = tcsetpgrp(terminal, group);
    before.thread_set_mask()?;
    Ok(passed?)
}
