//! What is compared on one machine: bare system calls, and the lines of `leasehold agent`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::load::{Contender, Key, Result};

/// Opens a file, locks it, writes into it who did; unlocks it by closing it.
pub(crate) struct RawFile(PathBuf);

impl RawFile {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        // Where the names of all keys begin.
        std::fs::create_dir_all(folder.join("bench"))?;
        Ok(Self(folder.to_path_buf()))
    }
}

impl Contender for RawFile {
    type Held = File;

    async fn acquire(&self, key: &Key) -> Result<File> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).truncate(false).write(true).open(self.0.join(key.name.as_str()))?;
        flock(&file, FlockOperation::LockExclusive)?;
        file.write_all(b"{\"holder\":\"the process that holds the lock, and since when\"}\n")?;
        Ok(file)
    }

    async fn release(&self, _key: &Key, held: File) -> Result<()> {
        Ok(flock(&held, FlockOperation::Unlock)?)
    }
}

/// The lines of an agent, as a client in any language says them: a connection to this socket for each lock.
pub(crate) struct AgentLines(pub(crate) PathBuf);

impl Contender for AgentLines {
    type Held = (BufReader<UnixStream>, u64);

    async fn acquire(&self, key: &Key) -> Result<(BufReader<UnixStream>, u64)> {
        let mut stream = BufReader::new(UnixStream::connect(&self.0).await?);
        stream.write_all(format!("{}\n", json!({ "lock": key.name.as_str() })).as_bytes()).await?;
        let held = answer(&mut stream, "held").await?;
        Ok((stream, held["token"].as_u64().unwrap_or_default()))
    }

    async fn release(&self, _key: &Key, (mut stream, _): (BufReader<UnixStream>, u64)) -> Result<()> {
        stream.write_all(b"{\"release\":true}\n").await?;
        answer(&mut stream, "released").await.map(drop)
    }

    fn token(held: &(BufReader<UnixStream>, u64)) -> u64 {
        held.1
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
