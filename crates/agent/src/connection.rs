//! One connection: a client asks for one lock, and has it as long as the connection lasts.

use std::convert::Infallible;
use std::future::pending;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::FutureExt;
use leasehold_core::{
    Admin, Clock, FencingToken, Holders, LockKey, Locks, LossReason, Moment, ReleaseOutcome, Semaphore,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::grant::{Grant, acquire, attach};
use crate::pipe::{Lines, NoLine, Outbox};
use crate::protocol::{Answer, HolderFields, LONGEST_LINE, Line, Refusal, Request, VERSION, parse, seconds};

/// Waits shorter than this are not told of.
const UNTOLD: Duration = Duration::from_millis(300);
/// How often a waiter's store is asked who is in the way.
const LOOK: Duration = Duration::from_secs(10);
/// How long that question may take.
const LOOK_BOUND: Duration = Duration::from_secs(1);
/// Renewals that prolong a lease by less are not told.
const UNTOLD_RENEWAL: Duration = Duration::from_millis(5);

/// How long a lock that the server ends is kept for a client that does not read.
const UNREAD: Duration = Duration::from_secs(1);

/// How a connection begins.
#[derive(Debug)]
pub enum Begin {
    /// The client says what it wants.
    Ask,
    /// It is known what the client wants.
    With(Box<Request>),
    /// The connection goes on that another process left.
    GoOn(Suspended),
}

/// What a connection is told to do before its client ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// To release the lock.
    Release,
    /// To leave the lock to the process that goes on with the connection.
    Suspend,
}

/// How a connection ended.
#[derive(Debug)]
pub enum End {
    /// The client closed the connection. What it held is released.
    Closed,
    /// The client released, or gave up.
    Released,
    /// Others held it for the whole wait.
    Busy(Option<Holders>),
    /// The lock was lost, for this reason.
    Lost(&'static str),
    /// Nothing was granted.
    Refused(Refusal),
    /// The connection can go on in another process.
    Suspended(Suspended),
    /// The client asks for the steps of the store in place of a lock, in this version of them.
    Steps(u32, Rest),
}

/// What has come of the client's next lines, and what of the answers it has not taken.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Rest {
    pub(crate) read: Vec<u8>,
    pub(crate) unsent: Vec<u8>,
}

/// A connection between two processes. Whoever has it can release its lock.
#[derive(Debug, Deserialize, Serialize)]
pub struct Suspended {
    request: Box<Request>,
    /// The detached locks. `None`: the client still waits.
    locks: Option<Vec<String>>,
    rest: Rest,
}

/// Serves one client until its end, and releases what it held. `admit` sees the request before anything is sent to the store,
/// and may change it or refuse it; what it answers is dropped with the connection.
///
/// # Cancel safety
/// Dropping the future releases the lock in the background.
pub async fn serve<A>(
    (input, output): (impl AsyncRead + Unpin + Send, impl AsyncWrite + Unpin + Send),
    mut begin: Begin,
    locks: &Locks,
    admit: impl FnOnce(&mut Request) -> Result<A, Refusal> + Send,
    stop: impl Future<Output = Stop> + Send,
) -> End {
    let rest = match &mut begin {
        Begin::GoOn(suspended) => std::mem::take(&mut suspended.rest),
        _ => Rest { read: Vec::new(), unsent: Answer::Leasehold(VERSION).line() },
    };
    let mut connection = Connection {
        input: Lines::new(input, rest.read, LONGEST_LINE),
        output: Outbox::new(output, rest.unsent),
        stop: pin!(stop),
        clock: Clock::system(),
        deadman: None,
        heard: Instant::now(),
        told_until: None,
        told_losing: false,
        told_of_loss: false,
    };
    let Err(mut end) = connection.run(begin, locks, admit).await;
    match &mut end {
        End::Suspended(Suspended { rest, .. }) | End::Steps(_, rest) => {
            *rest = Rest { read: connection.input.rest(), unsent: connection.output.rest() };
        }
        ended => {
            if !connection.told_of_loss {
                connection.output.put(&ended.line());
            }
            connection.output.finish().await;
        }
    }
    end
}

impl End {
    /// The last line of the server.
    fn line(&self) -> Vec<u8> {
        match self {
            Self::Closed | Self::Suspended(_) | Self::Steps(..) => Vec::new(),
            Self::Released => Answer::Released(true).line(),
            Self::Lost(reason) => Answer::Lost(reason).line(),
            Self::Busy(holders) => {
                Answer::Busy { holders: holders.as_ref().map(HolderFields::all).unwrap_or_default() }.line()
            }
            Self::Refused(refusal) => Answer::from(refusal).line(),
        }
    }
}

struct Connection<'s, R, W, S> {
    input: Lines<R>,
    output: Outbox<W>,
    stop: Pin<&'s mut S>,
    clock: Clock,
    deadman: Option<Duration>,
    heard: Instant,
    told_until: Option<Moment>,
    told_losing: bool,
    told_of_loss: bool,
}

/// What a connection waits for.
enum Event {
    /// The client is alive, or has taken all lines.
    Nothing,
    Lock(Box<Request>),
    Steps(u32),
    Stop(Stop),
    End(End),
}

impl<R, W, S> Connection<'_, R, W, S>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
    S: Future<Output = Stop> + Send,
{
    async fn run<A>(
        &mut self,
        begin: Begin,
        locks: &Locks,
        admit: impl FnOnce(&mut Request) -> Result<A, Refusal>,
    ) -> Result<Infallible, End> {
        let (mut request, taken_over) = match begin {
            Begin::Ask => (self.first_request().await?, None),
            Begin::With(request) => (*request, None),
            Begin::GoOn(suspended) => (*suspended.request, suspended.locks),
        };
        // As it was asked: what another process goes on with is admitted there once more.
        let asked = request.clone();
        let _admitted = admit(&mut request).map_err(End::Refused)?;
        self.deadman = request.deadman_ms.map(Duration::from_millis);
        self.heard = Instant::now();
        let grant = match taken_over {
            None => {
                let grant = self.wait(locks, &request, &asked).await?;
                self.tell_of(&grant);
                grant
            }
            Some(texts) => {
                let taken_over = attach(locks, &texts, &request).await;
                taken_over.ok_or(End::Lost(LossReason::Expired.as_str()))?
            }
        };
        Err(self.keep(grant, locks, request.options().lease(), asked).await)
    }

    async fn first_request(&mut self) -> Result<Request, End> {
        loop {
            match self.event().await {
                Event::Nothing => {}
                Event::Lock(request) => return Ok(*request),
                Event::Steps(version) => return Err(End::Steps(version, Rest::default())),
                Event::Stop(_) => return Err(End::Refused(Refusal::ending())),
                Event::End(end) => return Err(end),
            }
        }
    }

    /// Waits for the lock. Dropping what acquires gives up its place.
    async fn wait(&mut self, locks: &Locks, request: &Request, asked: &Request) -> Result<Grant, End> {
        let keys = in_the_way(locks, request)?;
        let mut acquiring = pin!(acquire(locks, request));
        let mut looking = pin!(look(locks, &keys, UNTOLD));
        let mut told = None;
        loop {
            tokio::select! {
                biased;
                granted = &mut acquiring => match granted {
                    // A server that ends frees its locks, and grants nobody one of them who is turned away then.
                    Ok(Some(grant)) => {
                        let stop = self.stop.as_mut().now_or_never();
                        return stop.map_or(Ok(grant), |stop| Err(stopped(stop, asked)));
                    }
                    Ok(None) => return Err(End::Busy(look(locks, &keys, Duration::ZERO).await)),
                    Err(refusal) => return Err(End::Refused(refusal)),
                },
                event = self.event() => match event {
                    Event::Nothing => {}
                    Event::Lock(_) | Event::Steps(_) => return Err(second_request()),
                    Event::Stop(stop) => return Err(stopped(stop, asked)),
                    Event::End(end) => return Err(end),
                },
                seen = &mut looking => {
                    looking.set(look(locks, &keys, LOOK));
                    if let Some(seen) = seen && self.output.is_empty() && told.as_ref() != Some(&who(&seen)) {
                        let line = Answer::Waiting { holders: HolderFields::all(&seen), waiters: seen.waiters };
                        self.output.put(&line.line());
                        told = Some(who(&seen));
                    }
                }
            }
        }
    }

    /// Keeps the lock until the client ends the connection, or the lock is lost.
    async fn keep(&mut self, grant: Grant, locks: &Locks, lease: Duration, asked: Request) -> End {
        let mut lost = pin!(grant.lost());
        let mut wanted = pin!(grant.wanted().fuse());
        loop {
            self.tell_renewals(&grant, lease);
            let event = tokio::select! {
                biased;
                reason = &mut lost => return End::Lost(reason.as_str()),
                () = &mut wanted => {
                    self.output.put(&Answer::Wanted(true).line());
                    continue;
                }
                event = self.event() => event,
                () = sleep((lease / 20).clamp(Duration::from_millis(5), Duration::from_secs(1))) => continue,
            };
            let end = match event {
                Event::Nothing => continue,
                Event::Lock(_) | Event::Steps(_) => second_request(),
                Event::Stop(Stop::Suspend) if grant.can_be_detached(locks) => {
                    let texts = grant.detach().map(|texts| suspended(asked, Some(texts)));
                    return texts.unwrap_or(End::Lost(LossReason::Shutdown.as_str()));
                }
                Event::Stop(_) => End::Lost(LossReason::Shutdown.as_str()),
                Event::End(end) => end,
            };
            if let End::Lost(_) = end {
                self.tell_of_loss(&end).await;
            }
            return released(grant, end).await;
        }
    }

    /// The client learns of a loss before anybody else can have the lock, unless it does not read.
    async fn tell_of_loss(&mut self, lost: &End) {
        self.output.put(&lost.line());
        let all = async { while !self.output.is_empty() && self.output.send().await.is_ok() {} };
        let _ = timeout(UNREAD, all).await;
        self.told_of_loss = true;
    }

    fn tell_of(&mut self, grant: &Grant) {
        let until = Some(grant.until(&self.clock)).filter(|until| *until != Moment::NEVER);
        self.output.put(&grant.line(until, self.clock.now()));
        self.told_until = until;
    }

    /// Tells of a renewal, and of one that does not come: a lease is renewed from a third of it on, so that the first renewal
    /// has failed when only a third is left.
    fn tell_renewals(&mut self, grant: &Grant, lease: Duration) {
        let until = grant.until(&self.clock);
        if until == Moment::NEVER || !self.output.is_empty() {
            return;
        }
        let is_renewed = self.told_until.is_none_or(|told| until.since(told) > UNTOLD_RENEWAL);
        if is_renewed {
            self.output.put(&Answer::Until(seconds(until)).line());
            (self.told_until, self.told_losing) = (Some(until), false);
        } else if !self.told_losing && until.since(self.clock.now()) < lease / 3 {
            let reason = LossReason::Unreachable.as_str();
            self.output.put(&Answer::Losing { reason, until: Some(seconds(until)) }.line());
            self.told_losing = true;
        }
    }

    /// What happens next. Lines go out before others are read, so that a client that only writes cannot put them off. Cancel safe.
    async fn event(&mut self) -> Event {
        let silence = self.deadman.and_then(|deadman| self.heard.checked_add(deadman));
        let silent = async {
            match silence {
                Some(silence) => sleep_until(silence).await,
                None => pending().await,
            }
        };
        let is_unsent = !self.output.is_empty();
        tokio::select! {
            biased;
            stop = &mut self.stop => Event::Stop(stop),
            sent = self.output.send(), if is_unsent => if sent.is_ok() { Event::Nothing } else { Event::End(End::Closed) },
            line = self.input.next() => {
                self.heard = Instant::now();
                match line.map(|line| parse(&line)) {
                    Ok(Ok(Line::Alive)) => Event::Nothing,
                    Ok(Ok(Line::Lock(request))) => Event::Lock(request),
                    Ok(Ok(Line::Steps(version))) => Event::Steps(version),
                    Ok(Ok(Line::Release)) => Event::End(End::Released),
                    Ok(Err(refusal)) => Event::End(End::Refused(refusal)),
                    Err(NoLine::TooLong) => Event::End(End::Refused(Refusal::usage("a line is longer than 64 KiB"))),
                    Err(NoLine::Closed) => Event::End(End::Closed),
                }
            }
            // After the lines that have come: this process may have been stopped, and not the client.
            () = silent => Event::End(End::Lost("deadman")),
        }
    }
}

fn second_request() -> End {
    End::Refused(Refusal::usage("a connection is for one lock: open another one"))
}

/// How a wait ends that the server ends.
fn stopped(stop: Stop, asked: &Request) -> End {
    match stop {
        Stop::Release => End::Refused(Refusal::ending()),
        Stop::Suspend => suspended(asked.clone(), None),
    }
}

fn suspended(request: Request, locks: Option<Vec<String>>) -> End {
    End::Suspended(Suspended { request: Box::new(request), locks, rest: Rest::default() })
}

/// Releases the lock, and answers how the connection ended, unless the lock had been lost before.
async fn released(grant: Grant, end: End) -> End {
    match (grant.release().await, end) {
        (Ok(ReleaseOutcome::AlreadyLost(reason)), End::Released) => End::Lost(reason.as_str()),
        (Err(error), End::Released) => End::Refused(error.into()),
        (_, end) => end,
    }
}

/// The keys whose holders are in the way of a request.
fn in_the_way(locks: &Locks, request: &Request) -> Result<Vec<LockKey>, End> {
    let keys = request.keys().map_err(End::Refused)?;
    match (request.permits, keys.as_slice()) {
        (Some(permits), [key]) => Semaphore::new(locks.locker(), key, permits)
            .map(|semaphore| semaphore.slots().to_vec())
            .map_err(|error| End::Refused(error.into())),
        _ => Ok(keys),
    }
}

/// Asks, after a pause, who holds the keys. `None`: the store does not tell.
async fn look(locks: &Locks, keys: &[LockKey], pause: Duration) -> Option<Holders> {
    sleep(pause).await;
    let mut all = Holders::new(keys.first()?, Vec::new());
    let inspect = async {
        for key in keys {
            let holders = locks.inspect(key).await.ok()?;
            all.holders.extend(holders.holders);
            all.waiters = if keys.len() == 1 { holders.waiters } else { None };
        }
        Some(all)
    };
    timeout(LOOK_BOUND, inspect).await.ok().flatten()
}

/// What makes one answer to a waiter differ from the next, without the times that run on.
fn who(holders: &Holders) -> (Vec<Option<FencingToken>>, Option<u64>) {
    (holders.holders.iter().map(|holder| holder.token).collect(), holders.waiters)
}

#[cfg(test)]
mod tests {
    use leasehold_core::{LockerExt, Memory};
    use leasehold_testkit::{corpus, eventually};
    use serde_json::Value;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, duplex, split};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_keeps_the_lock_and_is_told_the_newest_renewal_later() {
        let memory = Memory::new();
        let locks = Locks::shared(memory.clone());
        // Less than two lines fit into the connection.
        let (client, server) = duplex(64);
        let connection = tokio::spawn(async move {
            serve(split(server), Begin::Ask, &locks, |_| Ok(()), pending()).await;
        });
        let (read, mut write) = split(client);
        write.write_all(b"{\"lock\":\"k\",\"ttl_ms\":1000}\n").await.unwrap();
        let (key, clock) = (LockKey::new("k").unwrap(), Clock::system());
        let is_held = async || !memory.inspect(&key).await.unwrap().holders.is_empty();
        eventually("it is granted", &is_held).await;
        let granted = clock.now();
        while clock.now().since(granted) < Duration::from_secs(3) {
            assert!(is_held().await, "it is renewed");
            sleep(Duration::from_millis(20)).await;
        }
        let mut lines = BufReader::new(read).lines();
        let mut told = Vec::new();
        loop {
            let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            told.push(line["until"].as_f64());
            if line["until"].as_f64() > Some(seconds(clock.now())) {
                break;
            }
        }
        // The version, the grant, what was told before the connection was full, and the newest.
        assert!(told.len() <= 5, "old renewals were kept: {told:?}");
        write.shutdown().await.unwrap();
        connection.await.unwrap();
        assert!(!is_held().await);
    }

    #[tokio::test]
    async fn what_waits_in_vain_leaves_the_queue_with_its_client() {
        let memory = Memory::new();
        let locks = Locks::shared(memory.clone());
        let held = memory.lock("k").await.unwrap();
        let (mut client, server) = duplex(4096);
        let connection =
            tokio::spawn(async move { serve(split(server), Begin::Ask, &locks, |_| Ok(()), pending()).await });
        client.write_all(b"{\"lock\":\"k\"}\n").await.unwrap();
        let mut lines = BufReader::new(&mut client).lines();
        while !lines.next_line().await.unwrap().unwrap().contains("waiting") {}
        drop(client);
        assert!(matches!(connection.await.unwrap(), End::Closed));
        held.release().await.unwrap();
        assert!(memory.try_lock("k").await.unwrap().is_some());
    }

    #[test]
    fn whatever_a_client_says_its_connection_ends_and_nothing_is_held() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        corpus(include_str!("../corpus/lines.txt"), |bytes| {
            let memory = Memory::new();
            let locks = Locks::shared(memory.clone());
            let mut answers = std::io::Cursor::new(Vec::new());
            let said = [bytes, b"\n", bytes, b"\n"].concat();
            let ends = (said.as_slice(), &mut answers);
            let end = runtime.block_on(serve(ends, Begin::Ask, &locks, |_| Ok(()), pending()));
            let answers = answers.into_inner();
            let lines = answers.split_inclusive(|byte| *byte == b'\n');
            let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
            assert_eq!(lines[0], serde_json::json!({"leasehold": 1}));
            // On a machine that stands still meanwhile, a renewal is told, too.
            let told = lines.iter().filter(|line| line["until"].is_null()).count();
            assert!(told <= 3 && !matches!(end, End::Suspended(_)), "{end:?} {lines:?}");
            let page = runtime.block_on(memory.list("", None)).unwrap();
            assert!(page.keys.is_empty(), "{page:?}");
        });
    }

    #[tokio::test]
    async fn a_client_is_told_of_a_loss_before_the_lock_is_free() {
        let memory = Memory::new();
        let locks = Locks::shared(memory.clone());
        // Smaller than the line about the loss.
        let (client, server) = duplex(8);
        let (stop, stopped) = oneshot::channel();
        let request = Box::new(Request { lock: Some("k".to_owned()), ..Request::default() });
        let serving = tokio::spawn(async move {
            let stop = async { stopped.await.unwrap() };
            serve(split(server), Begin::With(request), &locks, |_| Ok(()), stop).await
        });
        let mut client = BufReader::with_capacity(1, client);
        for _ in 0..2 {
            client.read_line(&mut String::new()).await.unwrap();
        }
        let key = LockKey::new("k").unwrap();
        let is_held = async || !memory.inspect(&key).await.unwrap().holders.is_empty();
        let told = Instant::now();
        stop.send(Stop::Release).unwrap();
        while told.elapsed() < UNREAD / 4 {
            assert!(is_held().await || told.elapsed() >= UNREAD, "nobody was told of the loss");
            sleep(Duration::from_millis(5)).await;
        }
        let mut last = String::new();
        client.read_to_string(&mut last).await.unwrap();
        assert_eq!(last, "{\"lost\":\"shutdown\"}\n");
        assert!(matches!(serving.await.unwrap(), End::Lost("shutdown")));
        assert!(!is_held().await);
    }
}
