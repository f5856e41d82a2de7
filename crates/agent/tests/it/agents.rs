//! An agent for each store, which another process can find, too.

use std::collections::HashSet;
use std::future::pending;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use leasehold_agent::{Agent, AgentBackend, AgentLocks, Policy, Systemd};
use leasehold_core::{BoxFuture, Locks, Result};
use leasehold_testkit::{Deadline, PATIENCE};

/// A client of the agent that serves the store of this name. The first one starts it, and it serves until this process ends.
pub(crate) async fn client(
    name: &str,
    store: impl FnOnce() -> BoxFuture<'static, Result<Locks>> + Send + 'static,
) -> Result<AgentBackend> {
    static STARTED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let socket = socket(name);
    let is_first = STARTED.lock().unwrap().get_or_insert_default().insert(name.to_owned());
    if is_first && UnixStream::connect(&socket).is_err() {
        serve(socket.clone(), store);
    }
    let deadline = Deadline::after(PATIENCE);
    while UnixStream::connect(&socket).is_err() && !deadline.is_over() {
        tokio::task::yield_now().await;
    }
    AgentLocks::builder().path(socket).backend().await
}

fn serve(socket: PathBuf, store: impl FnOnce() -> BoxFuture<'static, Result<Locks>> + Send + 'static) {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let policy = Policy::parse("* * keys=1000000 connections=1000000").unwrap();
            let agent = Agent::new(store().await.unwrap(), "", policy, Systemd::default());
            agent.run(&socket, pending()).await.unwrap()
        });
    });
}

/// A path of a few bytes: the kernel takes 107. Every process makes the same one of a name.
fn socket(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join("leasehold-agents");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{:x}.sock", BuildHasherDefault::<DefaultHasher>::default().hash_one(name)))
}
