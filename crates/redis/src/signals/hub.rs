use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use leasehold_core::{Hint, Listener};
use tokio::sync::{mpsc, watch};

/// Who in this process listens on which channel.
#[derive(Debug, Default)]
pub(super) struct Hub(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    channels: HashMap<String, watch::Sender<()>>,
    /// Told of channels that nobody listens on any more.
    left: Option<mpsc::UnboundedSender<String>>,
}

impl Hub {
    pub(super) fn ear(self: &Arc<Self>, channel: String) -> Ear {
        let signals =
            self.state().channels.entry(channel.clone()).or_insert_with(|| watch::Sender::new(())).subscribe();
        Ear { hub: Arc::clone(self), channel, signals: Some(signals) }
    }

    pub(super) fn channels(&self) -> Vec<String> {
        self.state().channels.keys().cloned().collect()
    }

    pub(super) fn is_wanted(&self, channel: &str) -> bool {
        self.state().channels.contains_key(channel)
    }

    pub(super) fn tell_leaving(&self, left: mpsc::UnboundedSender<String>) {
        self.state().left = Some(left);
    }

    pub(super) fn wake(&self, channel: &str) {
        if let Some(signals) = self.state().channels.get(channel) {
            signals.send_replace(());
        }
    }

    pub(super) fn wake_all(&self) {
        for signals in self.state().channels.values() {
            signals.send_replace(());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One waiter's ear on one channel.
#[derive(Debug)]
pub(super) struct Ear {
    hub: Arc<Hub>,
    channel: String,
    /// Taken when it drops.
    signals: Option<watch::Receiver<()>>,
}

impl Ear {
    pub(super) fn channel(&self) -> String {
        self.channel.clone()
    }
}

#[async_trait]
impl Listener for Ear {
    async fn hint(&mut self) -> Hint {
        if let Some(signals) = &mut self.signals
            && signals.changed().await.is_ok()
        {
            return Hint::Freed;
        }
        std::future::pending().await
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        self.signals = None;
        if state.channels.get(&self.channel).is_some_and(|signals| signals.receiver_count() == 0) {
            state.channels.remove(&self.channel);
            if let Some(left) = &state.left {
                // Without a station there is no subscription to end.
                let _ = left.send(std::mem::take(&mut self.channel));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_signal_reaches_all_ears_of_its_channel_and_no_other() {
        let hub = Arc::new(Hub::default());
        let (mut one, mut two, mut other) = (hub.ear("a".into()), hub.ear("a".into()), hub.ear("b".into()));
        hub.wake("a");
        one.hint().await;
        two.hint().await;
        assert!(timeout(Duration::from_millis(20), other.hint()).await.is_err());
        hub.wake_all();
        other.hint().await;
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
}
