use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a server answered, independent of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A status or a string; bytes that are not UTF-8 are replaced.
    Text(String),
    /// An error reply.
    Refused(String),
    /// An integer.
    Number(i64),
    /// Nil.
    Nil,
    /// A list.
    List(Vec<Answer>),
}

impl Answer {
    /// The text; empty if it is something else.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Refused(text) => text,
            _ => "",
        }
    }

    /// The number; 0 if it is something else.
    pub fn number(&self) -> i64 {
        if let Self::Number(number) = self { *number } else { 0 }
    }
}

/// Sends commands over a connection of their own, one after the other, and gives the last answer.
///
/// # Errors
/// When the server does not answer within two seconds.
pub async fn ask(port: u16, commands: &[&[&str]]) -> Result<Answer> {
    let talk = async {
        let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
        let mut answer = Answer::Nil;
        for words in commands {
            let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
            let request = format!("*{}\r\n{}", words.len(), bulks.collect::<String>());
            stream.write_all(request.as_bytes()).await?;
            answer = read(&mut stream).await?;
        }
        Ok(answer)
    };
    timeout(Duration::from_secs(2), talk).await.map_err(|_| Error::from(ErrorKind::TimedOut))?
}

async fn read(stream: &mut BufReader<TcpStream>) -> Result<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or(ErrorKind::UnexpectedEof)?;
    let number = || rest.parse::<i64>().map_err(|_| Error::from(ErrorKind::InvalidData));
    Ok(match kind {
        "+" => Answer::Text(rest.to_owned()),
        "-" => Answer::Refused(rest.to_owned()),
        ":" => Answer::Number(number()?),
        "$" | "*" if rest == "-1" => Answer::Nil,
        "$" => {
            let mut bytes = vec![0; usize::try_from(number()?).unwrap_or_default() + 2];
            stream.read_exact(&mut bytes).await?;
            bytes.truncate(bytes.len() - 2);
            Answer::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        "*" => {
            let mut items = Vec::new();
            for _ in 0..number()? {
                items.push(Box::pin(read(stream)).await?);
            }
            Answer::List(items)
        }
        _ => return Err(ErrorKind::InvalidData.into()),
    })
}
