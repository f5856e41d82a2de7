//! Elections: the leader holds the lock on the name of the election, mostly for longer than a lease, and is written down and
//! checked as its holder, with the term as token.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_chaos::history::{Event, Mode};
use leasehold_core::{Election, ErrorKind, GuardHandle, Leadership, Locker};
use rand::Rng;

use super::hold::{Answer, Held, Wish};
use super::work::Task;

const NAME: &str = "leader";

/// The share of those who lead again after a loss, by themselves, in percent.
const LEAD_AGAIN: u32 = 40;

impl Task {
    /// Leads for longer than a lease.
    pub(super) async fn lead(&mut self) {
        let ttl = self.orders.ttl_ms;
        let wish = Wish { wait: Duration::from_millis(ttl), ..self.wish(NAME) };
        let time = Duration::from_millis(self.random.random_range(ttl / 2..ttl * 4));
        let candidate = format!("client {}", self.orders.client);
        let election = Election::new(Arc::clone(&self.locks.locker), NAME, &candidate).expect("valid names");
        let election = election.with_options(wish.options());
        if self.random.random_range(0..100) < LEAD_AGAIN {
            return self.lead_again_and_again(&election, &wish, time).await;
        }
        let led = self.campaign(&election, &wish).await;
        let Ok(mut led) = led else { return };
        if led.work(time).await {
            if self.random.random_bool(0.15) {
                return led.drop();
            }
            led.release(Leadership::resign).await;
        }
    }

    async fn campaign<L: Locker>(&self, election: &Election<L>, wish: &Wish<'_>) -> Answer<Held<Leadership>> {
        let op = self.begin();
        wish.called(&op, Mode::Exclusive);
        let campaign = async {
            match election.campaign().await {
                Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
                outcome => outcome.map(Some),
            }
        };
        wish.settle(op, campaign).await
    }

    /// Leads, and again after each loss, until the work of one term is done, or a shutdown comes.
    async fn lead_again_and_again<L: Locker>(&mut self, election: &Election<L>, wish: &Wish<'_>, time: Duration) {
        let shutdown = time.mul_f64(self.random.random_range(0.5..1.5));
        // The campaign for a term begins after this client led last.
        let (free, task) = (AtomicU64::new(self.recorder.now()), &*self);
        let work = |term: GuardHandle| async {
            let op = task.begin();
            let session = wish.session;
            let called =
                Event::Called { key: NAME.to_owned(), mode: Mode::Exclusive, wait_ms: None, session, attach: false };
            op.log_at(free.load(Ordering::Relaxed), called);
            let mut led = Held::granted(term, op, wish.ttl);
            let done = led.work(time).await;
            free.store(task.recorder.now(), Ordering::Relaxed);
            if done {
                led.drop();
            }
        };
        // What it failed with is no matter: each grant is in the history.
        let _ = election.run_while_leader_until(tokio::time::sleep(shutdown), work).await;
    }
}
