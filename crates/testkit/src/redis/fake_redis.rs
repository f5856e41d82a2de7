use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A server that answers what a test wants, also what no server should.
#[derive(Debug)]
pub struct FakeRedis {
    port: u16,
    received: Arc<Mutex<Vec<Vec<String>>>>,
    /// Dropped with the server, which ends its task.
    _accepting: JoinSet<()>,
}

/// The bytes that go back for a command.
type Answers = dyn Fn(&[&str]) -> Vec<u8> + Send + Sync;

impl FakeRedis {
    /// Starts one that answers each command with these bytes, and those for which there is nothing as a server that knows the
    /// [`greeting`](Self::greeting) alone; bytes that are not UTF-8 in a command are replaced.
    pub async fn start<A: Into<Vec<u8>>>(answer: impl Fn(&[&str]) -> Option<A> + Send + Sync + 'static) -> Self {
        let unknown = || "-ERR unknown command\r\n".into();
        let answers = move |words: &[&str]| {
            answer(words).map(Into::into).or_else(|| Self::greeting(words)).unwrap_or_else(unknown)
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let received = Arc::default();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::new(answers), Arc::clone(&received)));
        Self { port, received, _accepting: accepting }
    }

    /// How a server answers what the driver asks before anything else; `None` for all other commands.
    pub fn greeting(words: &[&str]) -> Option<Vec<u8>> {
        let answer = match *words {
            ["PING", ..] => "+PONG\r\n",
            ["AUTH" | "SELECT", ..] => "+OK\r\n",
            ["CLIENT", ..] => ":7\r\n",
            ["INFO", ..] => "$21\r\nredis_version:7.0.15\n\r\n",
            _ => return None,
        };
        Some(answer.into())
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How to connect to it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// All commands that came in.
    pub fn received(&self) -> Vec<Vec<String>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, answers: Arc<Answers>, received: Arc<Mutex<Vec<Vec<String>>>>) {
    // Its connections end with it.
    let mut serving = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        serving.spawn(serve(client, Arc::clone(&answers), Arc::clone(&received)));
    }
}

/// Until the client leaves.
async fn serve(
    client: TcpStream,
    answers: Arc<Answers>,
    received: Arc<Mutex<Vec<Vec<String>>>>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let (from, mut to) = client.into_split();
    let mut from = BufReader::new(from);
    while let Some(command) = read(&mut from).await? {
        let answer = answers(&command.iter().map(String::as_str).collect::<Vec<_>>());
        received.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        to.write_all(&answer).await?;
    }
    Ok(())
}

async fn read(from: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Option<Vec<String>>> {
    let mut line = String::new();
    if from.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    // The driver sends HELLO in one line, and everything else as a list of texts.
    let Some(count) = line.strip_prefix('*').and_then(|count| count.trim_end().parse::<usize>().ok()) else {
        return Ok(Some(line.split_whitespace().map(str::to_owned).collect()));
    };
    let mut words = Vec::new();
    for _ in 0..count {
        let Some(length) = length(from).await? else { return Ok(None) };
        let mut bytes = vec![0; length + 2];
        from.read_exact(&mut bytes).await?;
        bytes.truncate(length);
        words.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(Some(words))
}

async fn length(from: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Option<usize>> {
    let mut line = String::new();
    from.read_line(&mut line).await?;
    Ok(line.trim_end().strip_prefix('$').and_then(|length| length.parse().ok()))
}
