//! The two directions of a connection: lines that come, and lines that are on their way.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The lines of a client, and what has come of the next one.
pub(crate) struct Lines<R> {
    from: R,
    read: Vec<u8>,
    longest: usize,
}

/// Why no line came.
pub(crate) enum NoLine {
    /// The client ended its side, or the connection broke.
    Closed,
    /// The line is too long.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most so many bytes. `read` has come of them already.
    pub(crate) fn new(from: R, read: Vec<u8>, longest: usize) -> Self {
        Self { from, read, longest }
    }

    /// The next line without its end. A line that the client did not end before it closed its side is none: it may be a part.
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, NoLine> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.read.drain(..=end).collect();
                line.pop();
                return if line.len() > self.longest { Err(NoLine::TooLong) } else { Ok(line) };
            }
            if self.read.len() > self.longest {
                return Err(NoLine::TooLong);
            }
            let mut piece = [0; 4096];
            match self.from.read(&mut piece).await {
                Ok(0) | Err(_) => return Err(NoLine::Closed),
                Ok(count) => self.read.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// What has come of the next lines.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.read
    }
}

/// The lines that the client has not taken yet.
pub(crate) struct Outbox<W> {
    to: W,
    unsent: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(crate) fn new(to: W, unsent: Vec<u8>) -> Self {
        Self { to, unsent }
    }

    /// Whether the client has taken all lines. What comes again and again is only put into an empty outbox, so that a client that
    /// does not read costs no memory.
    pub(crate) fn is_empty(&self) -> bool {
        self.unsent.is_empty()
    }

    /// How many bytes the client has not taken.
    pub(crate) fn len(&self) -> usize {
        self.unsent.len()
    }

    pub(crate) fn put(&mut self, line: &[u8]) {
        self.unsent.extend_from_slice(line);
    }

    /// Sends as much as the client takes now. Cancel safe: what was not sent stays.
    pub(crate) async fn send(&mut self) -> io::Result<()> {
        let sent = self.to.write(&self.unsent).await?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.unsent.drain(..sent);
        if self.unsent.is_empty() { self.to.flush().await } else { Ok(()) }
    }

    /// Sends all that is left, for at most as long as a client that reads needs.
    pub(crate) async fn finish(mut self) {
        const BOUND: Duration = Duration::from_secs(5);
        let all = async {
            while !self.is_empty() && self.send().await.is_ok() {}
            self.to.flush().await
        };
        let _ = tokio::time::timeout(BOUND, all).await;
    }

    /// What the client has not taken.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.unsent
    }
}
