//! A memory store whose steps can be slow, fail, hang or panic.
#![allow(dead_code, clippy::all)]
use async_trait::async_trait;
use leasehold_core::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
pub enum Does {
    #[default]
    Well,
    Slow(Duration),
    Unavailable,
    LostAnswer,
    Refused,
    Hang,
    Panic,
}

#[derive(Debug, Default)]
pub struct Script {
    pub claims: VecDeque<Does>,
    pub claim: Does,
    pub renewals: VecDeque<Does>,
    pub renewal: Does,
    pub releases: VecDeque<Does>,
    pub release: Does,
    pub listen: Does,
}

#[derive(Clone, Debug)]
pub struct Scripted {
    pub store: MemoryBackend,
    pub script: Arc<Mutex<Script>>,
    pub counts: Arc<[AtomicUsize; 3]>,
    pub deaf: bool,
    pub queues: bool,
}

impl Scripted {
    pub fn new() -> Self {
        Self {
            store: MemoryBackend::new(Clock::system()),
            script: Arc::default(),
            counts: Arc::default(),
            deaf: false,
            queues: false,
        }
    }
    pub fn set(&self, f: impl FnOnce(&mut Script)) {
        f(&mut self.script.lock().unwrap())
    }
    pub fn engine(&self) -> Engine<Self> {
        Engine::new(self.clone())
    }
    pub fn engine_off(&self) -> Engine<Self> {
        Engine::with(self.clone(), Settings::new().hand_over(HandOver::off()))
    }
    pub fn count(&self, i: usize) -> usize {
        self.counts[i].load(Ordering::SeqCst)
    }
}

async fn before(does: Does) -> Result<bool> {
    match does {
        Does::Well => {}
        Does::Slow(d) => tokio::time::sleep(d).await,
        Does::Unavailable => return Err(Error::new(ErrorKind::Unavailable, "x")),
        Does::Refused => return Err(Error::new(ErrorKind::Backend, "x")),
        Does::LostAnswer => return Ok(true),
        Does::Hang => std::future::pending().await,
        Does::Panic => panic!("on purpose"),
    }
    Ok(false)
}

#[async_trait]
impl Backend for Scripted {
    fn capabilities(&self) -> Capabilities {
        let c = self.store.capabilities();
        if self.queues { c.with(Capability::Queue) } else { c }
    }
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.counts[0].fetch_add(1, Ordering::SeqCst);
        let does = {
            let mut s = self.script.lock().unwrap();
            let d = s.claim;
            s.claims.pop_front().unwrap_or(d)
        };
        let lost = before(does).await?;
        let answer = self.store.try_acquire(claim).await;
        if lost {
            return Err(Error::new(ErrorKind::Indeterminate, "x"));
        }
        answer
    }
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<Held>> {
        self.counts[1].fetch_add(1, Ordering::SeqCst);
        let does = {
            let mut s = self.script.lock().unwrap();
            let d = s.renewal;
            s.renewals.pop_front().unwrap_or(d)
        };
        match before(does).await {
            Ok(false) => self.store.renew(renewals, within).await,
            Ok(true) => {
                self.store.renew(renewals, within).await;
                renewals.iter().map(|_| Err(Error::new(ErrorKind::Indeterminate, "x"))).collect()
            }
            Err(e) => {
                let k = e.kind();
                renewals.iter().map(|_| Err(Error::new(k, "x"))).collect()
            }
        }
    }
    async fn release(&self, grant: &GrantRef) -> Result<Held> {
        self.counts[2].fetch_add(1, Ordering::SeqCst);
        let does = {
            let mut s = self.script.lock().unwrap();
            let d = s.release;
            s.releases.pop_front().unwrap_or(d)
        };
        let lost = before(does).await?;
        let answer = self.store.release(grant).await;
        if lost {
            return Err(Error::new(ErrorKind::Indeterminate, "x"));
        }
        answer
    }
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.store.inspect(key).await
    }
    async fn list(&self, p: &str, a: Option<&Cursor>) -> Result<Page> {
        self.store.list(p, a).await
    }
    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.store.force_release(key).await
    }
    fn wakeups(&self) -> Option<&dyn leasehold_core::Wakeups> {
        if self.deaf { None } else { Some(self) }
    }
}
impl SharedBackend for Scripted {}
#[async_trait]
impl leasehold_core::Wakeups for Scripted {
    async fn listen(&self, key: &LockKey) -> Result<Box<dyn Listener>> {
        let does = self.script.lock().unwrap().listen;
        before(does).await?;
        self.store.wakeups().unwrap().listen(key).await
    }
}

pub fn key(s: &str) -> LockKey {
    LockKey::new(s).unwrap()
}

/// Ends the process when it takes too long, so that a hang is told.
pub fn within<T: Send + 'static>(name: &str, limit: Duration, f: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let r = f();
        let _ = tx.send(r);
    });
    match rx.recv_timeout(limit) {
        Ok(r) => Some(r),
        Err(e) => {
            eprintln!("== {name}: {e} (limit {limit:?})");
            None
        }
    }
}
