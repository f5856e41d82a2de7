//! Commands to a Redis server, independent of every driver. The functions block.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a Redis server answered.
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

/// Sends commands to the server on this port of 127.0.0.1, one after the other over a connection of their own, and gives the
/// last answer. Each has to come within two seconds.
pub fn ask<C: AsRef<[W]>, W: AsRef<str>>(port: u16, commands: &[C]) -> Result<Answer> {
    ask_within(PATIENCE, port, commands)
}

/// The same, of a server that may take this long.
pub fn ask_within<C: AsRef<[W]>, W: AsRef<str>>(patience: Duration, port: u16, commands: &[C]) -> Result<Answer> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut stream = BufReader::new(stream);
    let mut answer = Answer::Nil;
    for words in commands {
        let words = words.as_ref();
        let bulks = words.iter().map(AsRef::as_ref).map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let request = format!("*{}\r\n{}", words.len(), bulks.collect::<String>());
        stream.get_mut().write_all(request.as_bytes())?;
        answer = read(&mut stream)?;
    }
    Ok(answer)
}

fn read(stream: &mut BufReader<TcpStream>) -> Result<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
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
            stream.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            Answer::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        "*" => Answer::List((0..number()?).map(|_| read(stream)).collect::<Result<_>>()?),
        _ => return Err(ErrorKind::InvalidData.into()),
    })
}
