use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};

use crate::{
    Admin, Error, ErrorKind, FencingToken, GuardHandle, IntoLockKey, LockGuard, LockKey, LockOptions, Locker,
    LockerExt, LossReason, Mode, ReleaseOutcome, Result, Wait, jittered,
};

/// An election: of all candidates under one name, on any number of machines, one leads at a time.
///
/// The leader holds the lock on the key that is the name of the election. Its **term** is the fencing token of that lock: a number
/// that grows from leader to leader, to be sent along with what the leader writes. The name of the **candidate** is the label of
/// the lock, so that [`leader`](Self::leader), [`inspect`](Admin::inspect) and `leasehold inspect` show who leads. Every locker will
/// do; a backend knows nothing of elections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> leasehold_core::Result<()> {
/// use leasehold_core::{Election, Memory};
///
/// let election = Election::new(Memory::new(), "scheduler", "host-a")?;
/// let leadership = election.campaign().await?; // waits until no other candidate leads
/// let leader = election.leader().await?.expect("this candidate leads");
/// assert_eq!((leader.candidate.as_str(), leader.term), ("host-a", leadership.term()));
/// leadership.resign().await?;
/// assert!(election.leader().await?.is_none());
///
/// // Or: the work is done as long as this candidate leads, and again when it leads again, until it ends by itself.
/// let done = election.run_while_leader(|term| async move { format!("written in term {:?}", term.fencing_token()) });
/// println!("{}", done.await?);
/// # Ok(()) }
/// ```
///
/// # What a leader may believe
/// While [`is_leader`](Leadership::is_leader) is true, the store has promised that nobody else leads, unless somebody
/// [released the lock by force](Admin::force_release): the next candidate leads at once then, and the old leader hears of it
/// with its next renewal. The work of
/// [`run_while_leader`](Self::run_while_leader) is dropped at the deadline of the lease, which comes before the store may name
/// another: by 1 % of the [ttl](LockOptions::ttl) and 2 ms. That stops work at its next `await`; work that does not await for longer
/// than that, and a machine that stands still, are stopped by nothing. There only the term protects, compared by the
/// resource that is written to.
///
/// Over a [session](crate::Capability::Reentrancy), which may take a key again that it holds, candidates of one session lead together,
/// in one term: give each a session of its own.
///
/// # Beside other elections
/// | | this | client-go `leaderelection` | etcd `concurrency.Election` |
/// |---|---|---|---|
/// | how long a dead leader is waited for | the ttl, 30 s by default | `LeaseDuration`, 15 s by default | the TTL of the session, 60 s by default |
/// | clock that decides | the store's; the leader's own for its deadline | that of each candidate, from when it saw the record change | the server's |
/// | renewal | from a third of the ttl on | every `RetryPeriod` (2 s); gives up after `RenewDeadline` (10 s) | the keep-alive of the session |
/// | leadership is lost | the work is dropped before another can lead | the context is cancelled, `OnStoppedLeading` is called, and `Run` returns | `Session.Done` is closed, which the program has to watch |
/// | another campaign after that | by itself, after a pause with jitter | the program calls `Run` again | the program makes a session and campaigns again |
/// | shutdown | resigns, in [`run_while_leader_until`](Self::run_while_leader_until) once the work has been dropped | gives up the record with `ReleaseOnCancel`; the program must have stopped its work before | `Resign`, or closing the session |
/// | number for fencing | the term | none; the documentation says that it does not fence | the create revision of the leader's key (`Rev`) |
/// | who leads | [`observe`](Self::observe) polls | `OnNewLeader`, from polling the record | `Observe`, from a watch |
/// | order of candidates | the order of waiters for a lock | none: whoever tries first | by the create revisions of their keys |
///
/// # Cancel safety
/// Dropping the future of [`campaign`](Self::campaign) leaves the election; nothing is left behind.
#[derive(Clone, Debug)]
pub struct Election<L> {
    locker: L,
    key: LockKey,
    candidate: Arc<str>,
    options: LockOptions,
}

/// Leads an election until it resigns, is dropped, or is lost.
#[derive(Debug)]
#[must_use = "dropping it resigns; keep it for as long as you lead"]
pub struct Leadership(LockGuard);

/// Who leads an election, as the store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The name of the candidate. Empty if the key was locked without a label, by a program that is no candidate.
    pub candidate: String,
    /// The term, where the backend gives tokens: the first token of the leader's lease. Where two campaigns of one candidate in one
    /// process follow each other directly, the second has a greater term of the same lease.
    pub term: Option<FencingToken>,
}

impl<L: Locker> Election<L> {
    /// An election under this name, for this candidate. Sends nothing.
    ///
    /// The candidate's name is for people: it need not be unique. Host and process are a good one.
    ///
    /// # Errors
    /// [`InvalidKey`](ErrorKind::InvalidKey) for an election's name that is no key; [`InvalidOptions`](ErrorKind::InvalidOptions)
    /// for a candidate's name that is empty or longer than [`MAX_TEXT_BYTES`](LockOptions::MAX_TEXT_BYTES).
    pub fn new(locker: L, name: impl IntoLockKey, candidate: &str) -> Result<Self> {
        let key: LockKey = name.into_lock_key()?;
        if !(1..=LockOptions::MAX_TEXT_BYTES).contains(&candidate.len()) {
            let most = LockOptions::MAX_TEXT_BYTES;
            let why = format!("the name of a candidate takes 1 to {most} bytes, and this has {}", candidate.len());
            let error = Error::new(ErrorKind::InvalidOptions, "make an election");
            return Err(error.with_backend(locker.capabilities().backend()).key(&key).detail(why));
        }
        let candidate: Arc<str> = candidate.into();
        Ok(Self { locker, key, options: LockOptions::new().label(Arc::clone(&candidate)), candidate })
    }

    /// This election with other options for its campaigns: the ttl, after which a leader that died is replaced; the wait, which
    /// limits [`campaign`](Self::campaign) alone; a reason; and a limit on the time of leading, after which other candidates have
    /// their turn. The label stays the name of the candidate.
    #[must_use]
    pub fn with_options(self, options: LockOptions) -> Self {
        Self { options: options.label(Arc::clone(&self.candidate)), ..self }
    }

    /// The name of the election, which is the key that its leader holds.
    pub fn name(&self) -> &LockKey {
        &self.key
    }

    /// The name of this candidate.
    pub fn candidate(&self) -> &str {
        &self.candidate
    }

    /// Waits until this candidate leads.
    ///
    /// # Errors
    /// As for [`Locker::acquire_or_busy`], and [`TimedOut`](ErrorKind::TimedOut) when the options limit the wait and others led all the time.
    pub async fn campaign(&self) -> Result<Leadership> {
        self.campaign_with(&self.options).await
    }

    async fn campaign_with(&self, options: &LockOptions) -> Result<Leadership> {
        let won = self.locker.acquire(&self.key, options).await?;
        won.map(Leadership).ok_or_else(|| {
            let error = Error::new(ErrorKind::TimedOut, "campaign").with_backend(self.locker.capabilities().backend());
            error.key(&self.key)
        })
    }

    /// Does `work` as long as this candidate leads, and returns what it returns.
    ///
    /// Campaigns, and calls `work` with a handle that knows the term. When the leadership is lost, the future of `work` is dropped
    /// at its next `await`; then this candidate campaigns again after a pause with jitter, and calls `work` anew. When the work
    /// ends, the candidate resigns. Work that ends in the moment of a loss is done again.
    ///
    /// # Errors
    /// As for [`Locker::acquire_or_busy`]: failures of the moment are ridden out, and others end it. `work` returns its own errors as its output.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and resigns in the background. A program that ends right afterwards may end before that
    /// reaches the store; with [`run_while_leader_until`](Self::run_while_leader_until) it waits for it.
    pub async fn run_while_leader<F, W>(&self, work: F) -> Result<W::Output>
    where
        F: FnMut(GuardHandle) -> W,
        W: Future,
    {
        match self.run_while_leader_until(pending(), work).await? {
            Some(done) => Ok(done),
            None => pending().await,
        }
    }

    /// Does as [`run_while_leader`](Self::run_while_leader) until `shutdown` is ready. Then the work is dropped, the candidate resigns,
    /// so that the next one leads at once, and the answer is `None`.
    ///
    /// # Errors
    /// As for [`run_while_leader`](Self::run_while_leader).
    ///
    /// # Cancel safety
    /// As for [`run_while_leader`](Self::run_while_leader).
    pub async fn run_while_leader_until<F, W>(
        &self,
        shutdown: impl Future<Output = ()>,
        mut work: F,
    ) -> Result<Option<W::Output>>
    where
        F: FnMut(GuardHandle) -> W,
        W: Future,
    {
        tokio::pin!(shutdown);
        let options = self.options.clone().wait(Wait::Forever);
        loop {
            let leadership = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(None),
                leadership = self.campaign_with(&options) => leadership?,
            };
            // What is under way is dropped at the end of the selection, before the lock is released or anything else is awaited.
            let ended = tokio::select! {
                biased;
                _ = leadership.lost() => Ended::Lost,
                () = &mut shutdown => Ended::Shutdown,
                done = work(leadership.handle()) => Ended::Done(done),
            };
            // Lost in the very poll in which the work ended: nobody knows whether it ended in time.
            let lost = leadership.0.loss().is_some();
            match ended {
                Ended::Lost => drop(leadership),
                Ended::Shutdown => {
                    // An outcome that is unknown is settled in the background, and by the end of the lease.
                    let _ = leadership.resign().await;
                    return Ok(None);
                }
                Ended::Done(done) => {
                    let _ = leadership.resign().await;
                    if !lost {
                        return Ok(Some(done));
                    }
                }
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(None),
                () = tokio::time::sleep(self.pause()) => {}
            }
        }
    }

    /// The pause before the next campaign. After an outage, or a release by force, those who led before come later than those who
    /// waited, and not all at once.
    fn pause(&self) -> Duration {
        let longest = (self.options.lease() / 10).min(Duration::from_secs(2));
        // A random part is left out, up to a half.
        jittered(longest, 0.5..=1.0)
    }
}

enum Ended<T> {
    Lost,
    Shutdown,
    Done(T),
}

impl<L: Locker + Admin> Election<L> {
    /// Asks the store who leads. `None`: nobody, at this moment.
    ///
    /// # Errors
    /// As for [`Admin::inspect`]. A store that fails is never reported as one without a leader.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        let holders = self.locker.inspect(&self.key).await?.holders;
        let leader = holders.into_iter().find(|holder| holder.mode == Mode::Exclusive);
        Ok(leader.map(|holder| Leader { candidate: holder.label.unwrap_or_default(), term: holder.token }))
    }

    /// Who leads: first at this moment, and then whenever that has changed. `Ok(None)` is told while nobody leads.
    ///
    /// The store is asked again and again: 50 ms after a change, then after pauses that grow to a second. So a change is
    /// told within about a second, and a leader that leads for less than that may not be told at all; the last one always is. While
    /// the store fails, that is told once as an error; what it says afterwards is told in any case. An error that is not
    /// [transient](Error::is_transient) ends the stream.
    ///
    /// Notifications of the store are not used for this: a release is announced only to those who wait for the lock.
    pub fn observe(&self) -> BoxStream<'_, Result<Option<Leader>>> {
        stream::unfold(Observed::Nothing, |told| self.next_change(told)).boxed()
    }

    async fn next_change(&self, told: Observed) -> Option<(Result<Option<Leader>>, Observed)> {
        const SHORTEST: Duration = Duration::from_millis(50);
        const LONGEST: Duration = Duration::from_secs(1);
        let mut pause = match told {
            Observed::Nothing => Duration::ZERO,
            Observed::Leader(_) | Observed::Failure => SHORTEST,
            Observed::End => return None,
        };
        loop {
            tokio::time::sleep(jittered(pause, 0.5..=1.0)).await;
            pause = (pause * 2).clamp(SHORTEST, LONGEST);
            match self.leader().await {
                Ok(leader) if matches!(&told, Observed::Leader(before) if *before == leader) => {}
                Ok(leader) => return Some((Ok(leader.clone()), Observed::Leader(leader))),
                Err(error) if !error.is_transient() => return Some((Err(error), Observed::End)),
                Err(_) if matches!(told, Observed::Failure) => {}
                Err(error) => return Some((Err(error), Observed::Failure)),
            }
        }
    }
}

/// What an observer told last.
enum Observed {
    Nothing,
    Leader(Option<Leader>),
    Failure,
    End,
}

impl Leadership {
    /// The term: the fencing token of the lock. `None` only on a backend that does not claim
    /// [`Fencing`](crate::Capability::Fencing).
    #[must_use]
    pub fn term(&self) -> Option<FencingToken> {
        self.0.fencing_token()
    }

    /// Whether this candidate certainly still leads: a comparison of two clock readings, no I/O. See
    /// [`Guard::is_held`](crate::Guard::is_held).
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0.is_held()
    }

    /// Resolves with the reason when the leadership is lost, before the store may name another leader. See
    /// [`Guard::lost`](crate::Guard::lost).
    ///
    /// # Panics
    /// When it is polled outside of a tokio runtime with timers.
    pub fn lost(&self) -> impl Future<Output = LossReason> + Send + 'static {
        self.0.lost()
    }

    /// A handle for code that only has to know of the leadership: it neither keeps nor ends it.
    pub fn handle(&self) -> GuardHandle {
        self.0.handle()
    }

    /// Stops leading, so that the next candidate leads at once.
    ///
    /// # Errors
    /// As for [`Guard::release`](crate::Guard::release).
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the resignation.
    pub async fn resign(self) -> Result<ReleaseOutcome> {
        self.0.release().await
    }
}
