//! The runtime with which the connections of a backend end.

use std::future::pending;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;

use crate::{Error, ErrorKind, Result};

/// The runtime on which a backend connected, and with which its connections end.
///
/// For backends whose driver does I/O on a tokio runtime: asked through connections that have ended with theirs, it would
/// only ever say that there is no answer.
#[derive(Debug)]
pub struct Home {
    runtime: Handle,
    /// Never does anything, and ends with the runtime, or with this.
    resident: JoinHandle<()>,
}

impl Home {
    /// The runtime that this is called on. `None`: there is none.
    pub fn here() -> Option<Self> {
        Handle::try_current().ok().map(|runtime| Self { resident: runtime.spawn(pending()), runtime })
    }

    /// The runtime for work that several callers wait for: the one of `home` while that goes on, else the one that this is
    /// called on. A caller's own runtime may rest (`block_on` has returned, and nobody drives it), and would keep the others
    /// waiting. `None`: there is none.
    pub fn for_all(home: Option<&Self>) -> Option<Handle> {
        home.and_then(Self::runtime).cloned().or_else(|| Handle::try_current().ok())
    }

    /// The runtime, while it goes on.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        (!self.resident.is_finished()).then_some(&self.runtime)
    }

    /// Whether threads of its own drive it, so that it never rests.
    pub(crate) fn has_workers(&self) -> bool {
        self.runtime.runtime_flavor() == RuntimeFlavor::MultiThread
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// [`Closed`](ErrorKind::Closed), with what to do, if it has ended: whoever waits without a limit would wait for ever.
    pub fn check(&self, operation: &'static str) -> Result<()> {
        if self.runtime().is_some() {
            return Ok(());
        }
        let advice =
            "the runtime that connected has ended, and the connections with it: connect again on one that goes on";
        Err(Error::new(ErrorKind::Closed, operation).detail(advice))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.resident.abort();
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn an_ended_runtime_is_told_from_one_that_rests() {
        assert!(Home::here().is_none());
        for builder in [Builder::new_current_thread, || Builder::new_multi_thread()] {
            let runtime = builder().build().unwrap();
            let home = runtime.block_on(async { Home::here() }).unwrap();
            home.check("ask").unwrap();
            let caller = builder().build().unwrap();
            let _guard = caller.enter();
            assert_eq!(Home::for_all(Some(&home)).map(|runtime| runtime.id()), Some(runtime.handle().id()));
            drop(runtime);
            assert_eq!(Home::for_all(Some(&home)).map(|runtime| runtime.id()), Some(caller.handle().id()));
            assert_eq!(Home::for_all(None).map(|runtime| runtime.id()), Some(caller.handle().id()));
            let error = home.check("ask").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed);
            assert!(error.to_string().contains("connect again on"), "{error}");
        }
    }
}
