//! The runtime with which the connections of a backend end.

use std::future::pending;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::{Error, ErrorKind, Result};

/// The runtime on which a backend connected, and with which its connections end.
///
/// For backends whose driver does I/O on a tokio runtime: asked through connections that have ended with theirs, it would
/// only ever say that there is no answer.
#[derive(Debug)]
pub struct Home(JoinHandle<()>);

impl Home {
    /// The runtime that this is called on. `None`: there is none.
    pub fn here() -> Option<Self> {
        // It never does anything, and ends with the runtime, or with this.
        Handle::try_current().ok().map(|runtime| Self(runtime.spawn(pending())))
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable), with what to do, if it has ended.
    pub fn check(&self, operation: &'static str) -> Result<()> {
        if !self.0.is_finished() {
            return Ok(());
        }
        let advice =
            "the runtime that connected has ended, and the connections with it: connect again on one that goes on";
        Err(Error::new(ErrorKind::Unavailable, operation).detail(advice))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.0.abort();
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
            drop(runtime);
            let error = home.check("ask").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.to_string().contains("connect again on"), "{error}");
        }
    }
}
