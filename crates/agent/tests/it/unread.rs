//! Answers that do not come, or are not read.

use std::future::pending;
use std::path::Path;

use leasehold_agent::{Agent, AgentLocks, Policy, Systemd};
use leasehold_core::conformance::{Fault, Faulty, Op};
use leasehold_core::{Backend, Claim, Clock, ErrorKind, LockKey, Locks, MemoryBackend, Mode};
use leasehold_testkit::{PATIENCE, eventually, test};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

const LISTS: usize = 120;

/// What it asked for has the connections of a store with few of them, and would have them until it reads.
#[test]
async fn what_it_asked_for_ends_all_the_same_and_so_does_its_connection() {
    let (store, folder) = (Faulty::new(MemoryBackend::new(Clock::system())), tempfile::tempdir().unwrap());
    let text = || Some("t".repeat(1000).into());
    for number in 0..100 {
        let key = LockKey::new(format!("k{number}")).unwrap();
        let claim = Claim::new(&key, Mode::Exclusive, PATIENCE);
        store.inner.try_acquire(&Claim { label: text(), reason: text(), ..claim }).await.unwrap();
    }
    let (faults, socket) = (store.faults.clone(), folder.path().join("agent.sock"));
    serve(&store, &socket).await;

    faults.always(Op::List, Fault::KeepReply);
    let mut program = UnixStream::connect(&socket).await.unwrap();
    program.write_all(b"{\"steps\":2}\n").await.unwrap();
    for number in 0..LISTS {
        program.write_all(format!("[{number},{{\"list\":[\"\",null]}}]\n").as_bytes()).await.unwrap();
    }
    eventually("all are under way", async || faults.calls(Op::List) == LISTS).await;
    faults.heal();
    eventually("their answers are waited for", async || faults.answered(Op::List) == LISTS).await;
    let mut read = Vec::new();
    let ended = timeout(PATIENCE, program.read_to_end(&mut read)).await;
    assert!(ended.is_ok(), "it is not ended, and has {} bytes to read", read.len());
}

/// On a connection that is shared by all of a process.
#[test]
async fn a_step_without_an_answer_ends_none_of_the_others() {
    let (store, folder) = (Faulty::new(MemoryBackend::new(Clock::system())), tempfile::tempdir().unwrap());
    let (faults, socket) = (store.faults.clone(), folder.path().join("agent.sock"));
    serve(&store, &socket).await;
    let client = AgentLocks::builder().path(socket).backend().await.unwrap();
    let key = LockKey::new("k").unwrap();
    faults.next(Op::Inspect, Fault::Hang, 1);
    let hangs = client.inspect(&key);
    let goes_on = async {
        eventually("it is under way", async || faults.calls(Op::Inspect) == 1).await;
        client.list("", None).await.unwrap();
        // Its own time ends half as much later.
        sleep(client.answers_within() / 2).await;
        faults.next(Op::List, Fault::KeepReply, 1);
        client.list("", None).await
    };
    let ended = async {
        let hung = hangs.await;
        faults.heal();
        hung
    };
    let (hung, went_on) = tokio::join!(ended, goes_on);
    assert_eq!(hung.unwrap_err().kind(), ErrorKind::Indeterminate);
    assert_eq!(went_on.unwrap().keys.len(), 0);
}

async fn serve(store: &Faulty<MemoryBackend>, socket: &Path) {
    let agent = Agent::new(Locks::shared(store.engine()), "", Policy::open(), Systemd::default());
    let path = socket.to_owned();
    tokio::spawn(async move { agent.run(&path, pending()).await });
    eventually("the agent listens", async || socket.exists()).await;
}
