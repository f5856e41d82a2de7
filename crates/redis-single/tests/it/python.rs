//! Programs in Python (`docs/clients/leasehold.py`) and ours share locks on a real Redis. Without `redis-server` or `python3` the tests
//! are ignored.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold_redis_single::{
    Admin, FencingToken, LockGuard, LockKey, LockOptions, LockerExt, RedisSingle, Result, Wait,
};
use leasehold_testkit::launch::find;
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{KilledOnDrop, eventually, needs, test};
use tokio::task::spawn_blocking;

use crate::waiters::{LINE, key, locker, places};

/// Carries out what it reads, a line each, and prints what comes of it.
const PROGRAM: &str = "
import io, select, socket, sys, time
sys.path.insert(0, sys.argv[1])
import leasehold
ask, wait, rest, done = leasehold.Redis.ask, select.select, time.sleep, []
leasehold.Redis.ask = lambda self, *words: done.append(words[0]) or ask(self, *words)
select.select = lambda *sockets: done.append('wait') or wait(*sockets)
time.sleep = lambda pause: done.append('rest') or rest(pause)
locks, lock, silent = leasehold.Locks(port=int(sys.argv[2]), namespace=sys.argv[3]), None, socket.socketpair()

def interrupt(connection):
    del connection.read
    raise KeyboardInterrupt

def carry_out(word, *rest):
    global lock
    if word == 'acquire':
        lock = locks.acquire(rest[0], ttl=float(rest[1]), wait=float(rest[2]), label='pythön')
        return lock.token if lock else 'none'
    elif word == 'renew':
        return lock.renew()
    elif word == 'is_held':
        return lock.is_held()
    elif word == 'release':
        return lock.release()
    elif word == 'what_was_done':
        done[:], before = [], ' '.join(done)
        return before
    elif word == 'look_every':
        leasehold.PLACE_LIVES = 3 * float(rest[0])
        return
    elif word == 'be_silent':
        locks.messages.socket = silent[0]
        return
    connection = getattr(locks, rest[0])
    if word == 'be_interrupted':
        connection.read = lambda: interrupt(connection)
    elif word == 'be_cut_off':
        connection.file = io.BytesIO(rest[1].encode().decode('unicode_escape').encode('latin-1'))

for line in sys.stdin:
    try:
        answer = carry_out(*line.rstrip('\\n').split('|'))
    except BaseException as error:
        answer = type(error).__name__
    print(answer, flush=True)
";

/// A program in Python with a connection of its own.
struct Python {
    _process: KilledOnDrop,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Python {
    fn start(server: &Server, namespace: &str) -> Self {
        let python = needs("python3", find("python3"));
        let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients");
        let mut command = Command::new(python);
        command.env("PYTHONDONTWRITEBYTECODE", "1").args(["-c", PROGRAM]).arg(clients);
        command.args([&server.port().to_string(), namespace]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = KilledOnDrop::spawn(&mut command).unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()).lines());
        Self { _process: process, input, output }
    }

    fn ask(&mut self, line: &str) -> String {
        self.begin(line);
        self.answer()
    }

    fn begin(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn answer(&mut self) -> String {
        self.output.next().expect("the program in Python goes on").unwrap()
    }
}

/// The answer of a program, for which a test on a runtime may wait.
async fn answer(mut python: Python) -> (String, Python) {
    spawn_blocking(move || (python.answer(), python)).await.unwrap()
}

fn token(guard: &LockGuard) -> u64 {
    guard.fencing_token().expect("Redis gives tokens").get()
}

#[test(multi_thread)]
async fn each_excludes_the_other_and_tokens_grow_from_one_to_the_other() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (ours, mut python) = (locker(&server).await?, Python::start(&server, "leasehold"));
    let mut last = 0;
    for _ in 0..5 {
        let guard = ours.lock("k").await?;
        assert!(token(&guard) > last, "{} is not above {last}", token(&guard));
        last = token(&guard);
        assert_eq!(python.ask("acquire|k|30|0"), "none");
        assert_eq!(python.ask("acquire|k|30|0.05"), "none", "a wait that ends leaves no lock and no place");
        let _ = guard.release().await?;

        let theirs: u64 = python.ask("acquire|k|30|0").parse().unwrap();
        assert!(theirs > last, "{theirs} is not above {last}");
        last = theirs;
        assert!(ours.try_lock("k").await?.is_none());
        let seen = ours.inspect(&key()).await?;
        let holder = &seen.holders[0];
        assert_eq!((holder.label.as_deref(), holder.token.map(FencingToken::get)), (Some("pythön"), Some(theirs)));
        assert_eq!([python.ask("renew"), python.ask("is_held")], ["True", "True"]);
        assert_eq!([python.ask("release"), python.ask("release"), python.ask("is_held")], ["True", "False", "False"]);
    }
    assert_eq!(places(&server).await, 0);
    Ok(())
}

#[test(multi_thread)]
async fn a_release_grants_the_key_to_the_waiter_of_the_other_language() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (ours, mut python) = (locker(&server).await?, Python::start(&server, "leasehold"));

    // A lease of an hour, so that only the release can be why the waiter is granted the key.
    let hour = LockOptions::new().ttl(Duration::from_secs(3600));
    let guard = ours.lock_with("k", &hour).await?;
    python.begin("acquire|k|3600|inf");
    eventually("the program in Python has a place", async || places(&server).await == 1).await;
    let _ = guard.release().await?;
    let (answered, mut python) = answer(python).await;
    assert!(answered.parse::<u64>().is_ok(), "{answered}");
    assert_eq!(python.ask("is_held"), "True");
    let left = ours.inspect(&key()).await?.holders[0].remaining;
    assert!(left > Some(Duration::from_secs(3000)), "a first lease out of the queue is prolonged at once: {left:?}");

    let waiter = tokio::spawn({
        let ours = ours.clone();
        async move { ours.lock_with("k", &hour).await }
    });
    eventually("ours has a place, and listens", async || can_be_woken(&server).await).await;
    let told = server.calls("publish").await;
    assert_eq!(python.ask("release"), "True");
    assert!(server.calls("publish").await > told, "the release by a program in Python wakes the waiter");
    let guard = waiter.await.unwrap()?;
    assert!(token(&guard) > answered.parse().unwrap());
    Ok(())
}

/// Whether somebody listens to the inbox of a place. The first place of a program is made before that.
async fn can_be_woken(server: &Server) -> bool {
    let list = async |words: &[&str]| match server.ask(words).await {
        Answer::List(texts) => texts,
        other => panic!("{other:?}"),
    };
    let (places, inboxes) = (list(&["HVALS", LINE]).await, list(&["PUBSUB", "CHANNELS", "*inbox*"]).await);
    places.iter().any(|place| inboxes.iter().any(|inbox| place.text().contains(inbox.text())))
}

#[test(multi_thread)]
async fn waiters_of_both_languages_stand_in_one_queue() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (ours, mut python) = (locker(&server).await?, Python::start(&server, "leasehold"));
    let guard = ours.lock("k").await?;
    python.begin("acquire|k|30|inf");
    eventually("the program in Python has a place", async || places(&server).await == 1).await;
    let second = tokio::spawn(async move { locker(&server).await?.lock("k").await.map(|guard| (guard, server)) });
    // It cannot overtake, however soon it asks.
    let _ = guard.release().await?;
    let (answered, mut python) = answer(python).await;
    let first: u64 = answered.parse().unwrap();
    assert!(!second.is_finished());
    assert_eq!(python.ask("release"), "True");
    let (guard, _server) = second.await.unwrap()?;
    assert!(token(&guard) > first);
    Ok(())
}

#[test(multi_thread)]
async fn a_holder_in_python_that_dies_is_followed_after_its_lease() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (ours, mut python) = (locker(&server).await?, Python::start(&server, "leasehold"));
    let theirs: u64 = python.ask("acquire|k|1.5|0").parse().unwrap();
    drop(python);
    assert!(ours.try_lock("k").await?.is_none(), "its lease goes on");
    let guard = ours.lock("k").await?;
    assert!(token(&guard) > theirs);
    Ok(())
}

#[test(multi_thread)]
async fn a_holder_in_python_learns_that_its_lock_was_taken_away_or_ran_out() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (ours, mut python) = (locker(&server).await?, Python::start(&server, "leasehold"));
    python.ask("acquire|k|30|0").parse::<u64>().unwrap();
    assert_eq!(ours.force_release(&key()).await?.holders.len(), 1);
    let guard = ours.lock("k").await?;
    assert_eq!([python.ask("renew"), python.ask("is_held"), python.ask("release")], ["False"; 3]);
    assert!(guard.is_held() && ours.try_lock("k").await?.is_none(), "the one that came after it is left alone");
    let _ = guard.release().await?;

    python.ask("acquire|k|0.3|0").parse::<u64>().unwrap();
    let wait = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(60)));
    let guard = ours.lock_with("k", &wait).await?;
    assert_eq!([python.ask("is_held"), python.ask("renew")], ["False", "False"], "it stopped before ours began");
    assert!(guard.is_held());
    Ok(())
}

#[test(multi_thread)]
async fn an_answer_that_was_not_read_whole_is_taken_for_no_other() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (ours, mut python) = (locker(&server).await?, Python::start(&server, "leasehold"));
    python.ask("acquire|k|30|0").parse::<u64>().unwrap();
    assert_eq!(ours.force_release(&key()).await?.holders.len(), 1);
    python.ask("be_interrupted|redis");
    assert_eq!(python.ask("acquire|other|30|0"), "KeyboardInterrupt");
    assert!(ours.try_lock("k").await?.is_some());
    // The lock that the program has is still that of `k`, and it has been lost.
    assert_eq!([python.ask("renew"), python.ask("is_held")], ["False", "False"]);

    for cut in ["*1", r"*1\r\n$2", r"*1\r\n$23\r\n", r"*1\r\n$23\r\ngranted 2890", r"*1\r\n$12\r\ngranted 2890"] {
        python.ask(&format!("be_cut_off|redis|{cut}"));
        assert_eq!(python.ask("acquire|k|30|0"), "ConnectionError", "{cut}");
    }
    python.ask("acquire|k|30|0").parse::<u64>().expect("it connects anew");
    assert_eq!(python.ask("release"), "True");
    Ok(())
}

#[test(multi_thread)]
async fn a_connection_for_messages_that_breaks_is_replaced_and_nothing_is_missed_meanwhile() -> Result<()> {
    let mut server = needs("redis-server", Server::start(&[]).await);
    let (ours, mut python) = (locker(&server).await?, Python::start(&server, "leasehold"));
    // So that a message is what ends each wait.
    python.ask("look_every|30");
    assert_eq!(python.ask("what_was_done"), "SUBSCRIBE");
    let Answer::List(inboxes) = server.ask(&["PUBSUB", "CHANNELS", "*inbox*"]).await else { panic!("no inbox") };
    let kill: &[&str] = &["CLIENT", "KILL", "TYPE", "pubsub"];
    let message: &[&str] = &["PUBLISH", inboxes[0].text(), "x"];

    // It ends before the wait, and during it.
    server.ask(kill).await;
    let mut done;
    for command in [NOTHING, kill, kill] {
        (done, python) = is_granted_after(command, true, &server, &ours, python).await?;
        assert!(done.contains("EVAL wait rest EVAL SUBSCRIBE EVAL"), "{command:?}: {done}");
    }
    // It ends in the middle of a message, or says what no server says.
    for cut in ["", "*3", r"*3\r\n$7\r\nmess", r"*3\r\n$7\r\nmessage\r\n", r"$1\r\n\xff\r\n", r"*x\r\n", r"-ERR\r\n"] {
        python.ask(&format!("be_cut_off|messages|{cut}"));
        (done, python) = is_granted_after(message, true, &server, &ours, python).await?;
        assert!(done.contains("EVAL wait rest EVAL SUBSCRIBE EVAL"), "{cut}: {done}");
    }
    // The program is interrupted while it reads a message, and then while it reads that it has subscribed.
    let guard = ours.lock("k").await?;
    server.ask(message).await;
    for _ in 0..2 {
        python.ask("be_interrupted|messages");
        assert_eq!(python.ask("acquire|k|3600|inf"), "KeyboardInterrupt");
    }
    let _ = guard.release().await?;
    (done, python) = is_granted_after(NOTHING, true, &server, &ours, python).await?;
    assert!(done.starts_with("EVAL SUBSCRIBE EVAL"), "{done}");
    // No sign of an end comes, and no message: the key is granted all the same, and this shows that something is wrong.
    python.ask("be_silent");
    python.ask("look_every|0.5");
    (done, python) = is_granted_after(NOTHING, false, &server, &ours, python).await?;
    assert!(done.starts_with("EVAL wait EVAL") && !done.contains("SUBSCRIBE"), "{done}");
    python.ask("look_every|30");
    (done, python) = is_granted_after(NOTHING, true, &server, &ours, python).await?;
    assert!(done.starts_with("EVAL SUBSCRIBE EVAL"), "{done}");
    // Nothing is wrong.
    (done, python) = is_granted_after(NOTHING, false, &server, &ours, python).await?;
    assert!(done.starts_with("EVAL wait EVAL") && !done.contains("SUBSCRIBE"), "{done}");

    server.kill();
    let answered = python.ask("acquire|k|30|0");
    assert!(answered.ends_with("Error"), "what became of the question is not known: {answered}");
    server.restart().await;
    (done, _) = is_granted_after(NOTHING, true, &server, &ours, python).await?;
    assert!(done.contains("EVAL wait rest EVAL SUBSCRIBE EVAL"), "{done}");
    Ok(())
}

/// A command that changes nothing.
const NOTHING: &[&str] = &["PING"];

/// The program waits for a key that ours holds, while the server carries out a command. Once the program has subscribed anew,
/// if it has to, ours releases the key. What the program did until it was granted that.
async fn is_granted_after(
    command: &[&str],
    subscribes: bool,
    server: &Server,
    ours: &RedisSingle,
    mut python: Python,
) -> Result<(String, Python)> {
    // Leases of an hour, so that only the release can be why the program is granted the key.
    let hour = LockOptions::new().ttl(Duration::from_secs(3600));
    let guard = ours.lock_with("k", &hour).await?;
    python.ask("what_was_done");
    let before = server.calls("subscribe").await;
    python.begin("acquire|k|3600|inf");
    eventually("the program in Python has a place", async || places(server).await == 1).await;
    server.ask(command).await;
    eventually("it has subscribed", async || !subscribes || server.calls("subscribe").await > before).await;
    let _ = guard.release().await?;
    let (answered, mut python) = answer(python).await;
    assert!(answered.parse::<u64>().is_ok(), "{answered} after {command:?}");
    let done = python.ask("what_was_done");
    assert!(!done.contains("SUBSCRIBE wait"), "a message of the time before it had subscribed would be missed: {done}");
    assert_eq!(python.ask("release"), "True");
    Ok((done, python))
}

#[test(multi_thread)]
async fn a_lease_or_a_key_that_no_other_client_takes_is_refused() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let mut python = Python::start(&server, "leasehold");
    let long = "k".repeat(256);
    for bad in ["k|0.0005", "k|0", "k|-1", "k|nan", "k|86401", "|30", &format!("{long}|30")] {
        assert_eq!(python.ask(&format!("acquire|{bad}|1")), "ValueError", "{bad}");
    }
    assert_eq!(server.calls("eval").await, 0);
    Ok(())
}

#[test(multi_thread)]
async fn names_are_the_same_in_both_languages() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let namespace = "a:b {c}%é";
    let ours = RedisSingle::builder().url(server.url()).namespace(namespace).connect().await?;
    let mut python = Python::start(&server, namespace);
    for name in ["plain/42", "a b", "{x}", "100%", "é:ü", "\"quoted\\", "~tilde^`", "\u{1}\u{7f}"] {
        python.ask(&format!("acquire|{name}|30|0")).parse::<u64>().unwrap();
        let seen = ours.inspect(&LockKey::new(name)?).await?;
        assert_eq!(seen.holders.len(), 1, "{name:?}");
        assert_eq!(python.ask("release"), "True");
    }
    Ok(())
}
