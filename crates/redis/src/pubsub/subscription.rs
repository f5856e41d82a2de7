use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::{Notification, Subscription};
use tokio::sync::watch;

use crate::pubsub::subscribers::Subscribers;

/// A subscription to the notifications of one topic. Dropping it unsubscribes.
#[derive(Debug)]
pub(super) struct TopicSubscription {
    subscribers: Arc<Subscribers>,
    pub(super) topic: String,
    /// Taken when it drops.
    notifications: Option<watch::Receiver<Notification>>,
}

impl TopicSubscription {
    pub(super) fn new(subscribers: &Arc<Subscribers>, topic: String) -> Self {
        let notifications = Some(subscribers.join(&topic));
        Self { subscribers: Arc::clone(subscribers), topic, notifications }
    }
}

#[async_trait]
impl Subscription for TopicSubscription {
    async fn next(&mut self) -> Notification {
        if let Some(notifications) = &mut self.notifications
            && notifications.changed().await.is_ok()
        {
            return *notifications.borrow_and_update();
        }
        Notification::Ended
    }
}

impl Drop for TopicSubscription {
    fn drop(&mut self) {
        self.subscribers.leave(&mut self.topic, &mut self.notifications);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::{LockKey, OwnerId};
    use tokio::time::timeout;

    use super::*;
    use crate::keyspace::names::Namespace;
    use crate::pubsub::subscribers::KEPT;

    fn subscribe(subscribers: &Arc<Subscribers>, topic: impl Into<String>) -> TopicSubscription {
        TopicSubscription::new(subscribers, topic.into())
    }

    #[tokio::test]
    async fn a_grant_reaches_the_subscription_of_its_topic_also_when_that_comes_later() {
        let (subscribers, owner) = (with_inbox(), OwnerId::random());
        let granted = Notification::Granted { owner, epoch: Some(7) };
        let mut there = subscribe(&subscribers, lock("here"));
        subscribers.received("inbox", &format!("{} 7 {}", owner.to_hex(), lock("here")));
        subscribers.received("inbox", &format!("{} 7 {}", owner.to_hex(), lock("later")));
        assert_eq!(there.next().await, granted);
        assert_eq!(subscribe(&subscribers, lock("later")).next().await, granted);
        assert!(timeout(Duration::from_millis(20), subscribe(&subscribers, lock("later")).next()).await.is_err());
        assert_eq!(subscribers.channels(), ["inbox", "{leasehold:}:forced"]);
    }

    #[tokio::test]
    async fn nothing_is_kept_that_no_claim_of_ours_could_be_about() {
        let subscribers = with_inbox();
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
            subscribers.received("inbox", &granted(topic));
        }
        assert_eq!(subscribers.early().len(), 0);
        // The longest names that there are.
        for number in 0..=KEPT {
            let key = format!("{number:0>3}{}", "{".repeat(252));
            subscribers.received("inbox", &granted(&lock(&key)));
        }
        let kept: usize = subscribers.early().iter().map(String::len).sum();
        assert_eq!(subscribers.early().len(), KEPT);
        assert!(kept < 64 * 1024, "{kept} bytes are kept");
    }

    fn with_inbox() -> Arc<Subscribers> {
        Arc::new(Subscribers::with_inbox("inbox".into(), Namespace::default(), "lock", true))
    }

    fn lock(key: &str) -> String {
        Namespace::default().of(&LockKey::new(key).unwrap()).part("lock")
    }

    fn granted(topic: &str) -> String {
        format!("{} 7 {topic}", OwnerId::random().to_hex())
    }
}
