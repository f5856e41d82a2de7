//! The command must not outlive a holder that was killed with SIGKILL: the one thing that needs unsafe code here.
#![allow(unsafe_code)]

use std::process::Command;

/// Has the kernel kill the command with SIGKILL when the thread that starts it ends, however it ends.
///
/// Linux only; elsewhere it does nothing. The kernel forgets it when the command is a set-user-id, set-group-id or
/// privileged program, and it does not reach what the command starts in its turn.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn dies_with_us(command: &mut Command) {
    use std::io;
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let in_the_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before the request above is not noticed by it.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()))
        }
    };
    // SAFETY: between fork and exec only async-signal-safe work is allowed: no allocation, no lock, no panic. The
    // closure makes two system calls without going through libc's caches, compares two integers, and makes an error
    // that is a plain number.
    unsafe {
        command.pre_exec(in_the_child);
    }
}

/// There is no such request on this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn dies_with_us(_command: &mut Command) {}
