//! Kills the command when this program is killed with SIGKILL. The only unsafe code of the workspace is here.
#![allow(unsafe_code)]

use std::process::Command;

/// Lets the kernel kill the command with SIGKILL when the thread that starts it ends, however it ends.
///
/// Works on Linux only; elsewhere it does nothing. The kernel drops the request when the command is a set-user-id,
/// set-group-id or privileged program, and programs that the command starts are not killed.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn dies_with_us(command: &mut Command) {
    use std::io;
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let in_the_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The request has no effect if the parent died before it.
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

/// Does nothing: this system has no parent-death signal.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn dies_with_us(_command: &mut Command) {}
