use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use leasehold_core::{Notification, OwnerId, Subscription};
use tokio::sync::{mpsc, watch};

use crate::{Names, number};

/// How many grants are kept for ears that come later: the answer to a claim and the message of its grant travel on two
/// connections. A grant that is forgotten is found by asking again.
const KEPT: usize = 64;

/// Who in this process listens for what becomes of which key.
#[derive(Debug, Default)]
pub(super) struct Hub {
    state: Mutex<State>,
    /// Without it every topic is a channel.
    inbox: Option<Inbox>,
    /// Messages come in.
    open: AtomicBool,
}

/// The one channel on which grants come in.
#[derive(Debug)]
struct Inbox {
    channel: String,
    /// Topics are the names of this part of the keys.
    names: Names,
    part: &'static str,
    /// What a message says is so, and not only worth a question.
    trusted: bool,
}

#[derive(Debug, Default)]
struct State {
    topics: HashMap<String, watch::Sender<Notification>>,
    /// Grants that nobody listened for, by topic.
    early: VecDeque<(String, Notification)>,
    /// Told of topics that nobody listens to any more.
    left: Option<mpsc::UnboundedSender<String>>,
}

impl Hub {
    pub(super) fn with_inbox(channel: String, names: Names, part: &'static str, trusted: bool) -> Self {
        Self { inbox: Some(Inbox { channel, names, part, trusted }), ..Self::default() }
    }

    pub(super) fn ear(self: &Arc<Self>, topic: String) -> Ear {
        let mut state = self.state();
        let early = state.early.iter().position(|(of, _)| *of == topic).and_then(|place| state.early.remove(place));
        let sender = state.topics.entry(topic.clone()).or_insert_with(|| watch::Sender::new(Notification::Freed));
        let signals = sender.subscribe();
        if let Some((_, hint)) = early {
            sender.send_replace(hint);
        }
        Ear { hub: Arc::clone(self), topic, signals: Some(signals) }
    }

    /// The channels that have to be subscribed to.
    pub(super) fn channels(&self) -> Vec<String> {
        match &self.inbox {
            Some(inbox) => vec![inbox.channel.clone()],
            None => self.state().topics.keys().cloned().collect(),
        }
    }

    pub(super) fn is_wanted(&self, channel: &str) -> bool {
        match &self.inbox {
            Some(inbox) => inbox.channel == channel,
            None => self.state().topics.contains_key(channel),
        }
    }

    /// The channel on which what becomes of a topic is told.
    pub(super) fn channel_of(&self, topic: &str) -> String {
        self.inbox.as_ref().map_or(topic, |inbox| &inbox.channel).to_owned()
    }

    pub(super) fn inbox(&self) -> Option<&str> {
        self.inbox.as_ref().filter(|_| self.open.load(Ordering::Acquire)).map(|inbox| &*inbox.channel)
    }

    pub(super) fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::Release);
    }

    pub(super) fn tell_leaving(&self, left: mpsc::UnboundedSender<String>) {
        self.state().left = Some(left);
    }

    pub(super) fn received(&self, channel: &str, message: &str) {
        let Some(inbox) = &self.inbox else { return self.tell(channel, Notification::Freed) };
        let mut words = message.splitn(3, ' ');
        let granted = (words.next().and_then(OwnerId::parse_hex), words.next().and_then(number), words.next());
        if let (Some(owner), Some(epoch), Some(topic)) = granted {
            let granted = Notification::Granted { owner, epoch: Some(epoch) };
            self.tell(topic, if inbox.trusted { granted } else { Notification::Freed });
        }
    }

    fn tell(&self, topic: &str, hint: Notification) {
        let mut state = self.state();
        if let Some(signals) = state.topics.get(topic) {
            signals.send_replace(hint);
        } else if self.inbox.as_ref().is_some_and(|inbox| inbox.names.key(topic, inbox.part).is_some()) {
            // Only a name that a claim of ours could have: anybody may publish here, and at any length.
            state.early.retain(|(of, _)| of != topic);
            state.early.truncate(KEPT - 1);
            state.early.push_front((topic.to_owned(), hint));
        }
    }

    /// Nobody who listens now will hear anything any more.
    pub(super) fn end(&self) {
        self.set_open(false);
        self.state().topics.clear();
    }

    pub(super) fn wake_all(&self) {
        for signals in self.state().topics.values() {
            signals.send_replace(Notification::Freed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One waiter's ear on one topic.
#[derive(Debug)]
pub(super) struct Ear {
    hub: Arc<Hub>,
    topic: String,
    /// Taken when it drops.
    signals: Option<watch::Receiver<Notification>>,
}

impl Ear {
    pub(super) fn topic(&self) -> &str {
        &self.topic
    }
}

#[async_trait]
impl Subscription for Ear {
    async fn next(&mut self) -> Notification {
        if let Some(signals) = &mut self.signals
            && signals.changed().await.is_ok()
        {
            return *signals.borrow_and_update();
        }
        Notification::Ended
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        self.signals = None;
        if state.topics.get(&self.topic).is_some_and(|signals| signals.receiver_count() == 0) {
            state.topics.remove(&self.topic);
            if let Some(left) = state.left.as_ref().filter(|_| self.hub.inbox.is_none()) {
                // Without a station there is no subscription to end.
                let _ = left.send(std::mem::take(&mut self.topic));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::LockKey;
    use tokio::time::timeout;

    use super::*;
    use crate::Namespace;

    #[tokio::test]
    async fn a_signal_reaches_all_ears_of_its_channel_and_no_other() {
        let hub = Arc::new(Hub::default());
        let (mut one, mut two, mut other) = (hub.ear("a".into()), hub.ear("a".into()), hub.ear("b".into()));
        hub.received("a", "1");
        one.next().await;
        two.next().await;
        assert!(timeout(Duration::from_millis(20), other.next()).await.is_err());
        hub.wake_all();
        other.next().await;
    }

    #[tokio::test]
    async fn the_last_ear_of_a_channel_ends_it() {
        let hub = Arc::new(Hub::default());
        let (left, mut leaving) = mpsc::unbounded_channel();
        hub.tell_leaving(left);
        let (one, two) = (hub.ear("a".into()), hub.ear("a".into()));
        drop(one);
        assert!(hub.is_wanted("a"));
        drop(two);
        assert!(!hub.is_wanted("a"));
        assert_eq!(leaving.recv().await.as_deref(), Some("a"));
    }

    #[tokio::test]
    async fn a_grant_reaches_the_ear_of_its_topic_also_when_that_comes_later() {
        let (hub, owner) = (with_inbox(), OwnerId::random());
        let granted = Notification::Granted { owner, epoch: Some(7) };
        let mut there = hub.ear(lock("here"));
        hub.received("inbox", &format!("{} 7 {}", owner.to_hex(), lock("here")));
        hub.received("inbox", &format!("{} 7 {}", owner.to_hex(), lock("later")));
        assert_eq!(there.next().await, granted);
        assert_eq!(hub.ear(lock("later")).next().await, granted);
        assert!(timeout(Duration::from_millis(20), hub.ear(lock("later")).next()).await.is_err());
        assert_eq!(hub.channels(), ["inbox"]);
    }

    #[tokio::test]
    async fn only_so_many_early_grants_are_kept_and_odd_messages_are_none() {
        let hub = with_inbox();
        for number in 0..=KEPT {
            hub.received("inbox", &granted(&lock(&number.to_string())));
        }
        let topic = lock("a");
        for odd in ["", " ", &format!("x 7 {topic}"), "7", &granted(&topic).replace(" 7 ", " x ")] {
            hub.received("inbox", odd);
        }
        assert_eq!(hub.state().early.len(), KEPT);
        assert!(timeout(Duration::from_millis(20), hub.ear(lock("0")).next()).await.is_err());
        hub.ear(lock("1")).next().await;
    }

    #[tokio::test]
    async fn nothing_is_kept_that_no_claim_of_ours_could_be_about() {
        let hub = with_inbox();
        let long = "x".repeat(1 << 20);
        for topic in [
            "",
            "here",
            &long,
            &format!("{}{long}", lock("a")),
            &lock("a").replace("leasehold", "other"),
            &lock("a").replace(":lock", ":fence"),
            &lock("a").replace(":a", &format!(":{long}")),
            &lock("a").replace(":a", ":%61"),
        ] {
            hub.received("inbox", &granted(topic));
        }
        assert_eq!(hub.state().early.len(), 0);
        // The longest names that there are.
        for number in 0..=KEPT {
            let key = format!("{number:0>3}{}", "{".repeat(252));
            hub.received("inbox", &granted(&lock(&key)));
        }
        let kept: usize = hub.state().early.iter().map(|(topic, _)| topic.len()).sum();
        assert_eq!(hub.state().early.len(), KEPT);
        assert!(kept < 64 * 1024, "{kept} bytes are kept");
    }

    fn with_inbox() -> Arc<Hub> {
        Arc::new(Hub::with_inbox("inbox".into(), Names::new(&Namespace::default()), "lock", true))
    }

    fn lock(key: &str) -> String {
        Names::new(&Namespace::default()).of(&LockKey::new(key).unwrap()).part("lock")
    }

    fn granted(topic: &str) -> String {
        format!("{} 7 {topic}", OwnerId::random().to_hex())
    }
}
