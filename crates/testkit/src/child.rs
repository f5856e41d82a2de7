use std::io;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// A child process that is ended with SIGKILL, by its process id, when this value is dropped.
#[derive(Debug)]
pub struct KilledOnDrop(Child);

impl KilledOnDrop {
    /// Starts the command.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }

    /// Ends the process now, and waits until it is gone. Does nothing to a process that has ended.
    pub fn end(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Deref for KilledOnDrop {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for KilledOnDrop {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.end();
    }
}
