//! What the two sides say to each other: one JSON object a line.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::{Clock, Error, ErrorKind, FencingToken, Holders, LockKey, LockOptions, Moment, Result, Wait};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol, which the first line of the server says.
pub(crate) const VERSION: u32 = 1;

/// The longest line of a client, in bytes.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// The most keys of one request: each is asked for at once.
pub(crate) const MOST_KEYS: usize = 64;

/// A line of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Asks for a lock.
    Lock(Box<Request>),
    /// Gives the lock back, or gives up waiting for it.
    Release,
    /// Says that the client is alive: `{}`.
    Alive,
    /// Asks to pass on the steps of a backend, in this version of them.
    Steps(u32),
}

/// What a client asks for. The names of the fields are an interface: see the README.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Request {
    /// The key.
    pub lock: Option<String>,
    /// Several keys, of which the client gets all or none.
    pub keys: Option<Vec<String>>,
    /// The name of an election, which is its key. The label is the name of the candidate.
    pub elect: Option<String>,
    /// Whether the lock excludes everybody, or writers alone.
    pub mode: Access,
    /// How many may hold the key at a time, each on a slot of its own.
    pub permits: Option<usize>,
    /// The longest wait. Without it the wait has no limit; zero asks once.
    pub wait_ms: Option<u64>,
    /// The lease.
    pub ttl_ms: Option<u64>,
    /// Why it is locked.
    pub reason: Option<String>,
    /// Who locks.
    pub label: Option<String>,
    /// The client is taken for dead when it says nothing for so long.
    pub deadman_ms: Option<u64>,
}

/// The mode of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Beside nobody else.
    #[default]
    Write,
    /// Beside other readers.
    Read,
}

/// Why a client gets no lock.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The kind. `None`: the client's line makes no sense.
    pub kind: Option<ErrorKind>,
    /// What is wrong, for people.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retry: bool,
}

impl Refusal {
    /// The client said what makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: None, message: message.into(), retry: false }
    }

    /// The client may not do that.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { kind: Some(ErrorKind::Backend), message: message.into(), retry: false }
    }

    /// There is no room for the client now.
    pub fn full(message: impl Into<String>) -> Self {
        Self { retry: true, ..Self::refused(message) }
    }

    /// The server ends, and another may follow it.
    pub fn ending() -> Self {
        Self { kind: Some(ErrorKind::Unavailable), message: "the server ends".to_owned(), retry: true }
    }

    /// All that the server says to a client that it does not serve.
    pub fn at_the_door(&self) -> Vec<u8> {
        [Answer::Leasehold(VERSION).line(), Answer::from(self).line()].concat()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (kind, retry) = (Some(error.kind()), error.is_transient());
        Self { kind, message: error.retell().to_string(), retry }
    }
}

/// The name of a kind of error in JSON: lower case, with underscores.
pub fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidKey => "invalid_key",
        ErrorKind::InvalidOptions => "invalid_options",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::TimedOut => "busy",
        ErrorKind::Lost(_) => "lost",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Indeterminate => "indeterminate",
        ErrorKind::Backend => "refused",
        _ => "system",
    }
}

/// Reads a line of the client. Fields that are not known are ignored.
pub(crate) fn parse(line: &[u8]) -> Result<Line, Refusal> {
    // One who types presses Enter.
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(Line::Alive);
    }
    let mut object: Map<String, Value> = serde_json::from_slice(line)
        .map_err(|error| Refusal::usage(format!("a line is not an object of JSON: {error}")))?;
    if object.is_empty() {
        return Ok(Line::Alive);
    }
    // A client that writes every field of its own type writes null for what it does not ask.
    object.retain(|_, value| !value.is_null());
    let asked = ["lock", "keys", "elect", "release", "steps"].into_iter().filter(|name| object.contains_key(*name));
    match (asked.count(), object.get("release"), object.get("steps")) {
        (1, Some(Value::Bool(true)), None) => Ok(Line::Release),
        (1, None, Some(steps)) => {
            let version = steps.as_u64().and_then(|version| u32::try_from(version).ok());
            version.map(Line::Steps).ok_or_else(|| Refusal::usage("steps have a version, which is a number"))
        }
        (1, None, None) => {
            let request = read(object);
            let request = request.map_err(|why| Refusal::usage(format!("a request is not understood: {why:.200}")))?;
            request.check().map(|()| Line::Lock(Box::new(request)))
        }
        (0, ..) => Err(Refusal::usage("a line asks for nothing: it has one of lock, keys, elect and release")),
        _ => Err(Refusal::usage("a line asks for one thing: lock, keys, elect, or release with true")),
    }
}

/// Reads the fields of a request, or says which of them is wrong, and why.
fn read(fields: Map<String, Value>) -> Result<Request, String> {
    let read = |fields| serde_json::from_value::<Request>(Value::Object(fields));
    read(fields.clone()).map_err(|error| {
        let mut alone = fields.into_iter().map(|(name, value)| (name.clone(), read(Map::from_iter([(name, value)]))));
        let wrong = alone.find_map(|(name, read)| Some(format!("{name}: {}", read.err()?)));
        wrong.unwrap_or_else(|| error.to_string())
    })
}

impl Request {
    /// Refuses what no store can grant, before anything is sent.
    fn check(&self) -> Result<(), Refusal> {
        let keys = self.keys()?;
        let usage = |why: &str| Err(Refusal::usage(why));
        if keys.is_empty() || keys.len() > MOST_KEYS {
            return usage(&format!("a request has 1 to {MOST_KEYS} keys"));
        }
        if self.elect.is_some() && (self.permits.is_some() || self.mode == Access::Read) {
            return usage("an election has one leader: it takes neither permits nor the mode read");
        }
        if self.mode == Access::Read && (self.permits.is_some() || self.keys.is_some()) {
            return usage("the mode read takes one key, and no permits");
        }
        if self.permits.is_some() && self.keys.is_some() {
            return usage("permits are of one key");
        }
        if self.deadman_ms == Some(0) {
            return usage("a deadman_ms of zero takes every client for dead");
        }
        Ok(())
    }

    /// The keys that are asked for, sorted, each once.
    pub fn keys(&self) -> Result<Vec<LockKey>, Refusal> {
        let one = self.lock.iter().chain(&self.elect);
        let mut keys: Vec<LockKey> = one
            .chain(self.keys.iter().flatten())
            .map(|key| LockKey::new(key.as_str()))
            .collect::<Result<_>>()
            .map_err(Refusal::from)?;
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    /// The options of the acquisition.
    pub fn options(&self) -> LockOptions {
        let mut options = LockOptions::new().wait(match self.wait_ms {
            None => Wait::Forever,
            Some(0) => Wait::Never,
            Some(wait) => Wait::UpTo(Duration::from_millis(wait)),
        });
        if let Some(ttl) = self.ttl_ms {
            options = options.ttl(Duration::from_millis(ttl));
        }
        if let Some(label) = &self.label {
            options = options.label(label.as_str());
        }
        if let Some(reason) = &self.reason {
            options = options.reason(reason.as_str());
        }
        options
    }
}

/// A line of the server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer<'a> {
    /// The version, which is the first line.
    Leasehold(u32),
    /// Others hold what is asked for.
    Waiting {
        holders: Vec<HolderFields<'a>>,
        /// How many wait in the store, where it keeps a queue.
        waiters: Option<u64>,
    },
    /// The client has the lock.
    Held {
        /// The fencing token, where there is one key.
        token: Option<u64>,
        /// The fencing token of each key.
        tokens: BTreeMap<&'a str, Option<u64>>,
        /// Until when it is certainly held without another renewal; nothing where there is no lease.
        until: Option<f64>,
        /// When this was said, by the clock of `until`: a client whose own clock is behind has another one.
        now: f64,
    },
    /// The lease was renewed, and lasts until then.
    Until(f64),
    /// Somebody waits for it.
    Wanted(bool),
    /// The store does not renew the lease.
    Losing {
        reason: &'a str,
        /// When it is lost.
        until: Option<f64>,
    },
    /// The client has the lock no more.
    Lost(&'a str),
    /// It was released.
    Released(bool),
    /// Others had it for the whole wait.
    Busy {
        /// Who they are, where the store tells.
        holders: Vec<HolderFields<'a>>,
    },
    /// Nothing is granted.
    #[serde(untagged)]
    Error { error: &'a str, message: &'a str, retry: bool },
}

/// What is said, as a line with its end.
pub(crate) fn line(said: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
}

impl Answer<'_> {
    /// The line, with its end.
    pub(crate) fn line(&self) -> Vec<u8> {
        line(self)
    }
}

impl<'a> From<&'a Refusal> for Answer<'a> {
    fn from(refusal: &'a Refusal) -> Self {
        Answer::Error {
            error: refusal.kind.map_or("usage", kind_name),
            message: &refusal.message,
            retry: refusal.retry,
        }
    }
}

/// The moment in seconds, by `CLOCK_BOOTTIME` where the system has it. Rounded down, so that nobody counts on too much.
pub(crate) fn seconds(moment: Moment) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "milliseconds since the start of a machine are far below 2^52")]
    let millis = moment.since(Moment::default()).as_millis() as f64;
    millis / 1000.0
}

/// A holder, as in the JSON output of every command.
#[derive(Clone, Debug, Serialize)]
pub struct HolderFields<'a> {
    mode: &'static str,
    token: Option<u64>,
    held_for_ms: Option<u64>,
    remaining_ms: Option<u64>,
    label: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> HolderFields<'a> {
    /// All holders of a key.
    pub fn all(holders: &'a Holders) -> Vec<Self> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let fields = holders.holders.iter().map(|holder| Self {
            mode: holder.mode.as_str(),
            token: holder.token.map(FencingToken::get),
            held_for_ms: holder.held_for(&Clock::system()).map(millis),
            remaining_ms: holder.remaining.map(millis),
            label: holder.label.as_deref(),
            reason: holder.reason.as_deref(),
        });
        fields.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Line, Refusal> {
        parse(line.as_bytes())
    }

    fn refused(line: &str) -> String {
        parsed(line).unwrap_err().message
    }

    #[test]
    fn a_request_is_read_with_all_its_fields_and_without_those_that_are_not_known() {
        let line =
            r#"{"lock":"k","mode":"read","wait_ms":0,"ttl_ms":5000,"reason":"r","label":"l","deadman_ms":9,"new":[1]}"#;
        let Line::Lock(request) = parsed(line).unwrap() else { panic!("it is a request") };
        let options = LockOptions::new().ttl(Duration::from_secs(5)).wait(Wait::Never).label("l").reason("r");
        assert_eq!((request.options(), request.mode, request.deadman_ms), (options, Access::Read, Some(9)));
        let Line::Lock(several) = parsed(r#"{"keys":["b","a","b"]}"#).unwrap() else { panic!("it is a request") };
        assert_eq!(several.keys().unwrap().iter().map(LockKey::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(several.options().patience(), Wait::Forever);
        let without = parsed(r#"{"lock":"k","keys":null,"release":null,"mode":null,"wait_ms":null}"#).unwrap();
        assert_eq!(without, parsed(r#"{"lock":"k"}"#).unwrap());
        assert_eq!(parsed("{}").unwrap(), Line::Alive);
        assert_eq!(parsed(r#" {"release":true,"x":1} "#).unwrap(), Line::Release);
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        for (line, why) in [
            ("x", "not an object"),
            ("[]", "not an object"),
            ("{\"lock\":\"k\"", "not an object"),
            (r#"{"unlock":"k"}"#, "asks for nothing"),
            (r#"{"release":false}"#, "one thing"),
            (r#"{"lock":"k","release":true}"#, "one thing"),
            (r#"{"lock":"k","elect":"k"}"#, "one thing"),
            (r#"{"lock":7}"#, "not understood"),
            (r#"{"lock":"k","ttl_ms":9,"wait_ms":-1}"#, "not understood: wait_ms: invalid value"),
            (r#"{"lock":"k","mode":"shared"}"#, "not understood: mode: unknown variant"),
            (r#"{"lock":""}"#, "key"),
            (r#"{"lock":null}"#, "asks for nothing"),
            (r#"{"keys":[]}"#, "1 to 64 keys"),
            (r#"{"keys":["a"],"mode":"read"}"#, "one key"),
            (r#"{"keys":["a"],"permits":2}"#, "one key"),
            (r#"{"elect":"a","permits":2}"#, "one leader"),
            (r#"{"lock":"k","deadman_ms":0}"#, "dead"),
        ] {
            assert!(refused(line).contains(why), "{line}: {}", refused(line));
        }
        assert!(matches!(parsed(" \r"), Ok(Line::Alive)), "Enter ends a connection");
        let long = refused(&format!(r#"{{"lock":"k","mode":"{}"}}"#, "x".repeat(60_000)));
        assert!(long.contains("xxx") && long.len() < 300, "the client's own text comes back whole: {}", long.len());
        let many: Vec<String> = (0..65).map(|n| n.to_string()).collect();
        assert!(refused(&serde_json::json!({ "keys": many }).to_string()).contains("1 to 64 keys"));
        assert_eq!(parsed(r#"{"lock":""}"#).unwrap_err().kind, Some(ErrorKind::InvalidKey));
    }

    #[test]
    fn a_moment_is_told_in_seconds_and_never_too_late() {
        let moment = Moment::default().plus(Duration::from_nanos(123_456_789_999_999));
        assert_eq!(String::from_utf8(Answer::Until(seconds(moment)).line()).unwrap(), "{\"until\":123456.789}\n");
    }
}
