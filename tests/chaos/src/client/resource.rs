//! The client's end of the connection to the runner.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::wire::{Reply, Request};

/// A connection to the runner, over which one request at a time is on its way.
pub(crate) struct Resource {
    requests: OwnedWriteHalf,
    replies: Lines<BufReader<OwnedReadHalf>>,
}

impl Resource {
    pub(crate) async fn connect(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let (replies, requests) = stream.into_split();
        Ok(Self { requests, replies: BufReader::new(replies).lines() })
    }

    /// Asks the runner. `None`: no answer came, because the runner is gone.
    pub(crate) async fn ask(&mut self, request: &Request) -> Option<Reply> {
        let mut line = serde_json::to_vec(request).ok()?;
        line.push(b'\n');
        self.requests.write_all(&line).await.ok()?;
        let reply = self.replies.next_line().await.ok()??;
        serde_json::from_str(&reply).ok()
    }

    pub(crate) async fn prove(&mut self, fault: &str) {
        self.ask(&Request::Proof { fault: fault.to_owned() }).await;
    }
}
