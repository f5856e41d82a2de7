//! The lines of `leasehold agent`, as a client in any language says them: a connection for each lock.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::load::{Contender, Result};

pub(crate) struct Lines {
    socket: PathBuf,
}

/// A connection, which is the lock.
pub(crate) struct Held {
    stream: BufReader<UnixStream>,
    token: u64,
}

impl Lines {
    pub(crate) fn new(socket: &Path) -> Self {
        Self { socket: socket.to_path_buf() }
    }
}

impl Contender for Lines {
    type Key = String;
    type Held = Held;

    fn key(&self, name: &str) -> Result<String> {
        Ok(json!({ "lock": name }).to_string() + "\n")
    }

    async fn acquire(&self, key: &String) -> Result<Held> {
        let mut stream = BufReader::new(UnixStream::connect(&self.socket).await?);
        stream.write_all(key.as_bytes()).await?;
        let held = answer(&mut stream, "held").await?;
        Ok(Held { stream, token: held["token"].as_u64().unwrap_or_default() })
    }

    async fn release(&self, mut held: Held) -> Result<()> {
        held.stream.write_all(b"{\"release\":true}\n").await?;
        answer(&mut held.stream, "released").await.map(drop)
    }

    fn token(held: &Held) -> u64 {
        held.token
    }
}

/// Waits for the line with this field.
async fn answer(stream: &mut BufReader<UnixStream>, field: &str) -> Result<Value> {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let mut answer: Value = serde_json::from_str(&line)?;
        if answer["error"].is_string() || answer["lost"].is_string() {
            return Err(line.into());
        } else if !answer[field].is_null() {
            return Ok(answer[field].take());
        }
    }
}
