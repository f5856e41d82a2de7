use std::ops::ControlFlow;

use async_trait::async_trait;
use leasehold_core::{LockKey, Notification, Notifications, OwnerId, Result, Subscription};
use tokio::sync::watch;
use tonic::Status;

use crate::nodes::{Listening, Step};
use crate::proto::{Range, WATCH, WatchCreate, WatchRequest, WatchResponse};
use crate::store::{Store, Waiters};

const SUBSCRIBE: &str = "subscribe";

const STEP: Step = Step { operation: SUBSCRIBE, path: WATCH, writes: false };

/// Does not send put events.
const NO_PUT: i32 = 0;

#[async_trait]
impl Notifications for Store {
    async fn subscribe(&self, key: &LockKey) -> Result<Box<dyn Subscription>> {
        // What is deleted after this revision is not missed, however late the watch begins.
        let (_, revision) = self.line(SUBSCRIBE, key).await?;
        let changes = self.changes();
        Ok(Box::new(Watched {
            store: self.clone(),
            key: key.clone(),
            revision,
            changes,
            told: Vec::new(),
            stream: None,
        }))
    }
}

/// Watches what is in the way of the first waiter of this process: the last entry before it that excludes it, and nothing else. While
/// nobody of this process waits in the line, it watches the whole line.
struct Watched {
    store: Store,
    key: LockKey,
    /// Up to where everything that was deleted is known.
    revision: i64,
    changes: watch::Receiver<()>,
    /// Of whose grants it has told.
    told: Vec<OwnerId>,
    stream: Option<Listening<WatchResponse>>,
}

#[async_trait]
impl Subscription for Watched {
    async fn next(&mut self) -> Notification {
        loop {
            self.changes.mark_unchanged();
            let waiters = self.store.waiters(&self.key);
            let range = match self.look(&waiters).await {
                Ok(ControlFlow::Break(notification)) => return notification,
                Ok(ControlFlow::Continue(range)) => range,
                Err(_) => return Notification::Ended,
            };
            let is_whole_line = !range.1.is_empty();
            tokio::select! {
                // Another of this process waits, or is the first that does, and is behind another entry.
                () = another(&self.store, &self.key, (&waiters, &self.told), &mut self.changes) => self.stream = None,
                deleted = deleted(&self.store, &mut self.stream, range, self.revision) => match deleted {
                    Ok(revision) => {
                        self.stream = None;
                        self.revision = revision;
                        if is_whole_line {
                            return Notification::Freed;
                        }
                    }
                    Err(_) => return Notification::Ended,
                },
            }
        }
    }
}

impl Watched {
    /// What is to be told, or to be watched.
    async fn look(&mut self, waiters: &Waiters) -> Result<ControlFlow<Notification, Range>> {
        let whole_line = || Ok(ControlFlow::Continue(self.store.names().line(&self.key)));
        self.told.retain(|told| waiters.iter().any(|(owner, _)| owner == told));
        if waiters.len() == self.told.len() {
            return whole_line();
        }
        let (line, revision) = self.store.line(SUBSCRIBE, &self.key).await?;
        for (owner, _) in waiters.iter().filter(|(owner, mode)| line.of(*owner, *mode).is_none()) {
            self.store.waits_no_more(&self.key, *owner);
        }
        let mut waiting = line.entries.iter().filter(|entry| !self.told.contains(&entry.owner));
        let Some(ours) = waiting.find(|entry| waiters.contains(&(entry.owner, entry.mode))) else {
            return whole_line();
        };
        if let Some(before) = line.before(ours) {
            self.revision = revision;
            return Ok(ControlFlow::Continue((before.name.clone(), Vec::new())));
        }
        self.told.push(ours.owner);
        Ok(ControlFlow::Break(Notification::Granted { owner: ours.owner, epoch: Some(line.epoch(ours)) }))
    }
}

/// Waits until others of this process wait for the key than before. That others wait for other keys says nothing, and neither does
/// that one is gone who was told of its grant: nobody watches on its behalf.
async fn another(
    store: &Store,
    key: &LockKey,
    (waiters, told): (&Waiters, &[OwnerId]),
    changes: &mut watch::Receiver<()>,
) {
    let untold =
        |waiters: &Waiters| -> Waiters { waiters.iter().filter(|(owner, _)| !told.contains(owner)).copied().collect() };
    // There is no error while there is the store.
    while changes.changed().await.is_ok() {
        if untold(&store.waiters(key)) != untold(waiters) {
            return;
        }
    }
}

/// Waits until one of these keys is deleted after this revision, and answers when. Also answers if etcd does not know any more.
async fn deleted(
    store: &Store,
    stream: &mut Option<Listening<WatchResponse>>,
    (key, range_end): Range,
    revision: i64,
) -> Result<i64> {
    let create = WatchCreate { key, range_end, start_revision: revision + 1, filters: vec![NO_PUT] };
    let watched = match stream {
        Some(watched) => watched,
        None => stream.insert(store.nodes().listen(STEP, WatchRequest { create: Some(create) }).await?),
    };
    loop {
        let message = watched.answers.message().await;
        let ended = || Err(store.nodes().broke_off(STEP, &Status::unknown("the watch ended")));
        match message {
            Err(status) => return Err(store.nodes().broke_off(STEP, &status)),
            Ok(None) => return ended(),
            // What was deleted since is not kept: it is looked at anew.
            Ok(Some(answer)) if answer.compact_revision > 0 => return Ok(answer.compact_revision.max(revision)),
            Ok(Some(answer)) if answer.canceled => return ended(),
            Ok(Some(answer)) if answer.events.is_empty() => {}
            Ok(Some(answer)) => return Ok(answer.header.map_or(revision, |header| header.revision)),
        }
    }
}
