mod waiters;

use std::collections::{HashMap, VecDeque};
use std::future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

pub use self::waiters::Waiters;

use super::release::Hold;
use super::tenure::Tenure;
use crate::clock::Moment;
use crate::{Error, LockKey, LockOptions, Mode, SessionId};

/// Who waits for which key in this process, first come, first served.
///
/// Only the head of a lane talks to the store, and not even that while the key is held here. A hand-over takes its
/// successor from here, and a shared grant its riders: the readers directly behind its head, up to the next writer.
#[derive(Debug)]
pub(super) struct Queue {
    lanes: Mutex<HashMap<LockKey, Lane>>,
    /// The exclusive tenures that are held here, apart from the lanes: most keys that are held nobody waits for.
    holders: Mutex<HashMap<LockKey, Holding>>,
    next_id: AtomicU64,
    /// If not, these readers talk to the store themselves, beside the head.
    rides: bool,
}

#[derive(Debug)]
struct Holding {
    tenure: Arc<Tenure>,
    session: Option<SessionId>,
}

#[derive(Debug)]
struct Lane {
    /// In the order of their ids.
    entries: VecDeque<Entry>,
    news: watch::Sender<News>,
    /// After the last hand-over that was allowed, other processes go first.
    rest_until: Moment,
    /// The session that holds the key, as far as that is known: those who act for it need not wait for their turn.
    holder: Option<SessionId>,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    mode: Mode,
    options: LockOptions,
    session: Option<SessionId>,
    /// Taken when it is admitted.
    turn: Option<oneshot::Sender<()>>,
    /// Taken when it is served by a hand-over.
    gift: Option<oneshot::Sender<Hold>>,
}

/// What the head of a lane tells those behind it.
#[derive(Debug, Default)]
pub(super) struct News {
    /// How often a grant of the key has ended in this process.
    freed: u64,
    /// What the store said last; `None` while nobody knows.
    said: Option<Said>,
}

/// How the wait for the head of the lane ended.
#[derive(Debug)]
pub(super) enum Turn {
    Ours,
    Given(Hold),
    Over(Said),
}

#[derive(Debug)]
pub(super) enum Said {
    Busy,
    Failed(Error),
}

impl Said {
    /// Whether asking again is in vain.
    pub(super) fn is_for_good(&self) -> bool {
        matches!(self, Self::Failed(error) if !error.is_transient())
    }

    /// The same for somebody else.
    pub(super) fn retell(&self) -> Self {
        match self {
            Self::Busy => Self::Busy,
            Self::Failed(error) => Self::Failed(error.retell()),
        }
    }
}

impl Queue {
    pub(super) fn new(rides: bool) -> Self {
        Self { lanes: Mutex::default(), holders: Mutex::default(), next_id: AtomicU64::new(0), rides }
    }

    pub(super) fn join(
        self: &Arc<Self>,
        key: &LockKey,
        mode: Mode,
        options: &LockOptions,
        session: Option<SessionId>,
    ) -> Ticket {
        let (turn, admitted) = oneshot::channel();
        let (gift, given) = oneshot::channel();
        let mut lanes = self.lanes();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let lane = lanes.entry(key.clone()).or_insert_with(Lane::new);
        let options = options.clone();
        lane.entries.push_back(Entry { id, mode, options, session, turn: Some(turn), gift: Some(gift) });
        lane.admit(self.rides);
        if session.is_some() {
            lane.call(self.session_of(lane, key));
        }
        let news = lane.news.subscribe();
        Ticket { queue: Arc::clone(self), key: key.clone(), id, session, turn: admitted, gift: given, news }
    }

    /// The key is held here: nobody of this process needs to ask the store for it.
    pub(super) fn held(&self, tenure: &Arc<Tenure>, session: Option<SessionId>) {
        if tenure.grant.mode == Mode::Exclusive {
            let holding = Holding { tenure: Arc::clone(tenure), session };
            self.holders().insert(tenure.grant.key.clone(), holding);
        }
        if session.is_some()
            && let Some(lane) = self.lanes().get_mut(&tenure.grant.key)
        {
            lane.call(session);
        }
    }

    /// It is held no more, although the store may not know that yet.
    pub(super) fn ended(&self, tenure: &Arc<Tenure>) {
        let mut holders = self.holders();
        if holders.get(&tenure.grant.key).is_some_and(|holding| Arc::ptr_eq(&holding.tenure, tenure)) {
            holders.remove(&tenure.grant.key);
        }
    }

    /// The exclusive tenure of this process, if it has one.
    pub(super) fn holder(&self, key: &LockKey) -> Option<Arc<Tenure>> {
        self.in_the_way(key, None)
    }

    /// The same, unless it is of a session for which one of its own asks.
    fn in_the_way(&self, key: &LockKey, asks: Option<SessionId>) -> Option<Arc<Tenure>> {
        let holders = self.holders();
        let holding = holders.get(key).filter(|holding| asks.is_none() || holding.session != asks)?;
        holding.tenure.is_held().then(|| Arc::clone(&holding.tenure))
    }

    /// A grant of the key ended here: the head may find it free.
    pub(super) fn freed(&self, key: &LockKey) {
        if let Some(lane) = self.lanes().get_mut(key) {
            lane.holder = None;
            lane.news.send_modify(|news| {
                news.freed += 1;
                news.said = None;
            });
        }
    }

    /// How to reach the next in line, if it wants just what this tenure is.
    pub(super) fn successor(&self, tenure: &Tenure) -> Option<oneshot::Sender<Hold>> {
        let mut lanes = self.lanes();
        let entries = &mut lanes.get_mut(&tenure.grant.key)?.entries;
        let next = entries.iter_mut().find(|entry| entry.gift.is_some())?;
        let alike = next.mode == tenure.grant.mode && tenure.suits(&next.options);
        if alike { next.gift.take() } else { None }
    }

    /// How to reach a reader behind the head that joined before `mark` and wants just what this tenure is.
    pub(super) fn rider(&self, tenure: &Tenure, mark: u64) -> Option<oneshot::Sender<Hold>> {
        let mut lanes = self.lanes();
        let behind = lanes.get_mut(&tenure.grant.key)?.entries.iter_mut().skip(1);
        let mut together = behind.take_while(|entry| entry.mode == Mode::Shared && entry.id < mark);
        together.find(|entry| entry.gift.is_some() && tenure.suits(&entry.options))?.gift.take()
    }

    /// Lets other processes go first until then, if anybody waits here.
    pub(super) fn rest(&self, key: &LockKey, until: Moment) {
        if let Some(lane) = self.lanes().get_mut(key) {
            lane.rest_until = until;
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<LockKey, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holders(&self) -> MutexGuard<'_, HashMap<LockKey, Holding>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn new() -> Self {
        Self {
            entries: VecDeque::with_capacity(1),
            news: watch::Sender::new(News::default()),
            rest_until: Moment::default(),
            holder: None,
        }
    }

    fn tell(&self, said: Said) {
        self.news.send_modify(|news| news.said = Some(said));
    }

    fn admit(&mut self, rides: bool) {
        let beside = !rides && self.entries.front().is_some_and(|head| head.mode == Mode::Shared);
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let goes = index == 0 || (beside && entry.mode == Mode::Shared);
            if !goes {
                break;
            }
            if let Some(turn) = entry.turn.take() {
                // A waiter that is gone removes its entry when its ticket drops.
                let _ = turn.send(());
            }
        }
    }
}

/// A place in the queue. Dropping it leaves the queue and lets the next one go.
#[derive(Debug)]
pub(super) struct Ticket {
    queue: Arc<Queue>,
    key: LockKey,
    id: u64,
    session: Option<SessionId>,
    turn: oneshot::Receiver<()>,
    gift: oneshot::Receiver<Hold>,
    news: watch::Receiver<News>,
}

impl Ticket {
    pub(super) fn is_admitted(&mut self) -> bool {
        self.turn.is_terminated() || self.turn.try_recv().is_ok()
    }

    /// Ends when this waiter may talk to the store, or is given what it waits for. Cancel safe.
    pub(super) async fn turn(&mut self) -> Turn {
        tokio::select! {
            biased;
            Ok(hold) = &mut self.gift, if !self.gift.is_terminated() => Turn::Given(hold),
            _ = &mut self.turn, if !self.turn.is_terminated() => Turn::Ours,
            else => Turn::Ours,
        }
    }

    /// Ends when somebody of this process hands over. Cancel safe: what was given is passed on.
    pub(super) async fn given(&mut self) -> Hold {
        if !self.gift.is_terminated()
            && let Ok(hold) = (&mut self.gift).await
        {
            return hold;
        }
        future::pending().await
    }

    /// The tenure of this process that stands in the way.
    pub(super) fn held_here(&self) -> Option<Arc<Tenure>> {
        self.queue.in_the_way(&self.key, self.session)
    }

    /// Until when other processes go first.
    pub(super) fn rests_until(&self) -> Moment {
        self.queue.lanes().get(&self.key).map_or_else(Moment::default, |lane| lane.rest_until)
    }

    /// The same, or when the head knows what the store says. Cancel safe.
    pub(super) async fn turn_or_news(&mut self) -> Turn {
        tokio::select! {
            biased;
            Ok(hold) = &mut self.gift, if !self.gift.is_terminated() => Turn::Given(hold),
            _ = &mut self.turn, if !self.turn.is_terminated() => Turn::Ours,
            Ok(news) = self.news.wait_for(|news| news.said.is_some()) => {
                news.said.as_ref().map_or(Turn::Ours, |said| Turn::Over(said.retell()))
            }
            else => Turn::Ours,
        }
    }

    /// Tells those behind, and those who come while this one stays, what the store says.
    pub(super) fn tell(&self, said: Said) {
        if let Some(lane) = self.queue.lanes().get(&self.key) {
            lane.tell(said);
        }
    }

    /// The same, from one who does not stay.
    pub(super) fn tell_those_behind(&self, said: Said) {
        if let Some(lane) = self.queue.lanes().get(&self.key).filter(|lane| lane.entries.len() > 1) {
            lane.tell(said);
        }
    }

    /// Who queued so far, of all lanes; to be read before an attempt, so that nobody rides on a grant that is older
    /// than its wish.
    pub(super) fn queued_so_far(&self) -> u64 {
        self.queue.next_id.load(Ordering::Relaxed)
    }

    /// How often the key was freed here; to be read before an attempt, so that no release falls in between.
    pub(super) fn freed_so_far(&self) -> u64 {
        self.news.borrow().freed
    }

    /// Ends when this waiter is given what it waits for, or when the key was freed here after `seen`; `None`: that does
    /// not matter. Cancel safe.
    pub(super) async fn given_or_freed_after(&mut self, seen: Option<u64>) -> Option<Hold> {
        tokio::select! {
            biased;
            Ok(hold) = &mut self.gift, if !self.gift.is_terminated() => Some(hold),
            // The sender lives as long as this ticket's own entry.
            _ = self.news.wait_for(|news| seen.is_some_and(|seen| news.freed > seen)) => None,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut lanes = self.queue.lanes();
        let Some(lane) = lanes.get_mut(&self.key) else { return };
        if let Ok(index) = lane.entries.binary_search_by_key(&self.id, |entry| entry.id) {
            lane.entries.remove(index);
        }
        lane.admit(self.queue.rides);
        if lane.entries.is_empty() {
            lanes.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> (Arc<Queue>, LockKey) {
        (Arc::new(Queue::new(false)), LockKey::new("k").unwrap())
    }

    #[tokio::test]
    async fn the_first_goes_and_the_next_follows_when_it_leaves() {
        let (queue, key) = queue();
        let mut first = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        let mut second = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        let mut third = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        assert!(first.is_admitted());
        assert!(!second.is_admitted());
        drop(second);
        assert!(!third.is_admitted());
        drop(first);
        assert!(matches!(third.turn().await, Turn::Ours));
        assert!(third.is_admitted());
        drop(third);
        assert!(queue.lanes().is_empty());
    }

    #[tokio::test]
    async fn readers_go_together_up_to_the_next_writer() {
        let (queue, key) = queue();
        let mut writer = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        let mut readers: Vec<_> = (0..3).map(|_| queue.join(&key, Mode::Shared, &LockOptions::new(), None)).collect();
        let mut next_writer = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        let mut late_reader = queue.join(&key, Mode::Shared, &LockOptions::new(), None);
        assert!(writer.is_admitted());
        assert!(!readers[0].is_admitted());
        drop(writer);
        assert!(readers.iter_mut().all(Ticket::is_admitted));
        assert!(!next_writer.is_admitted());
        assert!(!late_reader.is_admitted());
        readers.clear();
        assert!(next_writer.is_admitted());
        assert!(!late_reader.is_admitted());
    }

    #[tokio::test]
    async fn what_the_head_learns_reaches_those_behind_until_the_key_is_freed() {
        let (queue, key) = queue();
        let head = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        let mut behind = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        head.tell(Said::Failed(Error::new(crate::ErrorKind::Unavailable, "acquire")));
        assert!(matches!(behind.turn_or_news().await, Turn::Over(Said::Failed(_))));
        let seen = behind.freed_so_far();
        queue.freed(&key);
        assert!(behind.given_or_freed_after(Some(seen)).await.is_none());
        head.tell(Said::Busy);
        assert!(matches!(behind.turn_or_news().await, Turn::Over(Said::Busy)));
        drop(head);
        assert!(matches!(behind.turn_or_news().await, Turn::Ours));
    }

    #[test]
    fn other_keys_have_other_lanes() {
        let (queue, key) = queue();
        let mut here = queue.join(&key, Mode::Exclusive, &LockOptions::new(), None);
        let mut there = queue.join(&LockKey::new("other").unwrap(), Mode::Exclusive, &LockOptions::new(), None);
        assert!(here.is_admitted() && there.is_admitted());
        assert_eq!(queue.lanes().len(), 2);
    }
}
