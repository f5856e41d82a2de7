//! Plays a script on a store, and hears what it answers.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::judge::{Answer, Asked, Heard, Judge, Step, Wrong};
use super::script::{Beside, Ended, Move, Near, Of, Poll, Ttl, Until, When, Which, text};
use crate::clock::Moment;
use crate::conformance::TestClient;
use crate::conformance::direct::WITHIN;
use crate::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Error, ErrorKind, GrantRef, Holder, LeaseStatus, LockKey,
    Mode, Notification, OwnerId, Renewal,
};

/// How long a notification may take on a busy machine.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

/// The client that ends locks by force, and claims none: an engine tells those of its own callers whose lease it ended itself.
pub(super) const OPERATOR: usize = 3;

/// The client that is meant. Those before the operator are counted round.
fn place(by: usize) -> usize {
    if by == OPERATOR { by } else { by % OPERATOR }
}

/// How a script ended before its end.
#[derive(Debug)]
pub(super) enum End {
    /// The store failed for a moment, in this way; what it did is not known.
    Unclear(String),
    /// An answer that the contract does not allow, and the script until there.
    Wrong(Wrong, String),
}

/// A grant that there was, and the client that got it.
#[derive(Clone, Debug)]
struct Had {
    grant: GrantRef,
    by: usize,
}

#[derive(Debug)]
struct Subscribed {
    by: usize,
    heard: mpsc::UnboundedReceiver<Notification>,
    task: AbortHandle,
}

impl Subscribed {
    /// What was told until now.
    fn forgets(&mut self) {
        while self.heard.try_recv().is_ok() {}
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the scripts of a run have in common.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) clients: Vec<Arc<TestClient>>,
    pub(super) claims: Capabilities,
    /// See [`Fixture::steps_are_atomic`](crate::conformance::Fixture::steps_are_atomic).
    pub(super) is_atomic: bool,
    /// Whether the store shows when a holder was granted the key.
    pub(super) is_dated: bool,
}

/// One script under way.
#[derive(Debug)]
pub(super) struct Play {
    clients: Vec<Arc<TestClient>>,
    claims: Capabilities,
    is_atomic: bool,
    key: LockKey,
    clock: Clock,
    judge: Judge,
    had: Vec<Had>,
    /// The take-overs, to be sent once more.
    taken: Vec<(GrantRef, OwnerId)>,
    told: String,
}

type Played<T = ()> = Result<T, End>;

/// What is to be asked.
#[derive(Clone, Debug)]
struct Asks {
    by: usize,
    step: Step,
    when: When,
    met: bool,
    /// The claim that the store may have granted by itself, not before this moment.
    granted: Option<(Claim, Moment)>,
}

/// One in the line of a store: its client, its claim, its first lease, and when it has to ask again.
type Placed = (usize, Claim, Duration, Duration);

impl Play {
    pub(super) fn new(store: &Store, key: LockKey) -> Self {
        let Store { clients, claims, is_atomic, is_dated } = store.clone();
        let (judge, clock) = (Judge::new(claims.clone(), is_dated), Clock::system());
        // One of the greatest length would fill the screen.
        let name = match key.as_str().split_once(&"x".repeat(80)) {
            Some((stem, ending)) => format!(
                "{:?}, in all {} bytes",
                format!("{stem}…{}", ending.trim_start_matches('x')),
                key.as_str().len()
            ),
            None => format!("{key:?}"),
        };
        let told = format!("the key {name}\n");
        Self { clients, claims, is_atomic, key, clock, judge, had: Vec::new(), taken: Vec::new(), told }
    }

    /// Plays the moves, and frees the key.
    pub(super) async fn all(mut self, moves: &[Move]) -> Played {
        for step in moves {
            self.one(step).await?;
        }
        self.ask(OPERATOR, Step::Force(None)).await.map(drop)
    }

    async fn one(&mut self, step: &Move) -> Played {
        match step {
            Move::Await { mode, ended, ttl, beside } => self.awaits(*mode, *ended, ttl.of(&self.claims), *beside).await,
            Move::Line { waiting, leaves, ended, ttl } => {
                self.line(*waiting, *leaves, *ended, ttl.of(&self.claims)).await
            }
            Move::Wait(Until::Millis(millis)) => self.wait(Duration::from_millis(*millis)).await,
            Move::Wait(Until::End(after)) => match self.next_end() {
                Some(left) => self.wait(left + Duration::from_millis(*after)).await,
                None => Ok(()),
            },
            Move::Edge(by, poll) => self.edge(*by, *poll).await,
            Move::Meet(met) => self.meet(met).await,
            of_one_step => match self.step(of_one_step) {
                Some((by, step)) => self.ask(by, step).await.map(drop),
                None => Ok(()),
            },
        }
    }

    /// The step of a move, and who is to ask it. `None` for one of several steps, and for one of a grant, while there was none.
    fn step(&self, of: &Move) -> Option<(usize, Step)> {
        let step = match of {
            Move::Claim { by, mode, ttl, of, waits, text } => {
                let claim = Claim { waits: *waits, ..self.claim_of(*by, *mode, *ttl, *of, *text) };
                // A claim is repeated by the client that lost its answer.
                let first = self.had.iter().rev().find(|had| had.grant.owner == claim.owner).map(|had| had.by);
                (first.unwrap_or(*by), Step::Claim(claim))
            }
            Move::Renew(renewals) => {
                let which =
                    renewals.iter().filter_map(|(which, ttl)| Some((self.which(*which)?, ttl.of(&self.claims))));
                let which: Vec<_> = which.collect();
                let by = which.first()?.0.by;
                // A session renews what is its own.
                let ours = which.into_iter().filter(|(had, _)| had.by == by);
                let renewals = ours.map(|(had, ttl)| Renewal { grant: had.grant, ttl }).collect();
                (self.for_the_owner(by), Step::Renew(renewals))
            }
            Move::Release { of, without_epoch } => {
                let had = self.which(*of)?;
                let epoch = had.grant.epoch.filter(|_| !without_epoch);
                (self.for_the_owner(had.by), Step::Release(GrantRef { epoch, ..had.grant }))
            }
            Move::TakeOver { of, by, ttl, again } => {
                // Also one behind which the grant went on to another: its new owner does not hold it any more.
                let taken = again.and_then(|back| self.taken.iter().rev().nth(back).cloned());
                let (grant, owner) = taken.or_else(|| Some((self.which(*of)?.grant, OwnerId::random())))?;
                (*by, Step::TakeOver(grant, owner, ttl.of(&self.claims)))
            }
            Move::Downgrade { of, ttl, text } => {
                let had = self.which(*of)?;
                let claim = self.claim_of(had.by, Mode::Shared, *ttl, Of::New, *text);
                (had.by, Step::Downgrade(GrantRef { mode: Mode::Exclusive, ..had.grant }, claim))
            }
            Move::Force(None) => (OPERATOR, Step::Force(None)),
            Move::Force(Some(which)) => {
                let epoch = self.which(*which)?.grant.epoch.filter(|_| self.claims.has(Capability::Fencing))?;
                (OPERATOR, Step::Force(Some(epoch)))
            }
            Move::Inspect(by) => (*by, Step::Inspect),
            Move::List(by) => (*by, Step::List),
            Move::Await { .. } | Move::Line { .. } | Move::Wait(_) | Move::Edge(..) | Move::Meet(_) => return None,
        };
        Some(step)
    }

    /// Asks several steps at one moment.
    async fn meet(&mut self, met: &[(Move, When)]) -> Played {
        let mut asks = Vec::<Asks>::new();
        for (step, when) in met {
            let Some((by, mut step)) = self.step(step) else { continue };
            match &mut step {
                // Something may come between those of a batch.
                Step::Renew(renewals) => renewals.truncate(1),
                // No owner claims a key anew beside the end of what it had.
                Step::Claim(claim) if !self.claims.has(Capability::Reentrancy) => claim.owner = OwnerId::random(),
                _ => {}
            }
            // Of one session, two claims are two levels.
            let is_level = |other: &Asks| {
                let claims = [&other.step, &step].iter().all(|step| matches!(step, Step::Claim(_)));
                claims && place(other.by) == place(by) && self.claims.has(Capability::Reentrancy)
            };
            let sees_a_half = !self.is_atomic && asks.iter().any(|other| sees_a_half(&other.step, &step));
            if !asks.iter().any(is_level) && !sees_a_half {
                asks.push(Asks { by, step, when: *when, met: met.len() > 1, granted: None });
            }
        }
        self.ask_at_once(&asks).await?;
        // What they left behind is asked at once, and in both ways.
        self.ask(self.had.len(), Step::List).await?;
        self.ask(self.had.len(), Step::Inspect).await.map(drop)
    }

    /// Some client: a lease is that of an owner id, and not of the process that claimed it, except where that is a session. An agent
    /// that was started anew has nothing else.
    fn for_the_owner(&self, by: usize) -> usize {
        let is_anybodys = self.claims.has(Capability::Lease) && !self.claims.has(Capability::Reentrancy);
        by + if is_anybodys { self.had.len() } else { 0 }
    }

    /// The time to ten milliseconds before the next end of a lease, if a script can wait so long.
    fn next_end(&self) -> Option<Duration> {
        let now = self.clock.now();
        let left = self.judge.next_end(now)?.since(now);
        (left <= Ttl::longest_wait(&self.claims)).then(|| left.saturating_sub(Duration::from_millis(10)))
    }

    async fn wait(&mut self, time: Duration) -> Played {
        let _ = writeln!(self.told, "wait {time:.1?}");
        tokio::time::sleep(time).await;
        Ok(())
    }

    async fn edge(&mut self, by: usize, poll: Poll) -> Played {
        let Some(left) = self.next_end() else { return Ok(()) };
        self.wait(left).await?;
        let over = self.clock.now().plus(Duration::from_millis(70) + self.claims.lease_granularity());
        let (told, granted) = (self.told.len(), self.had.len());
        while self.clock.now() < over && self.had.len() == granted {
            // Of the same answers the last will do.
            self.told.truncate(told);
            match poll {
                Poll::Inspect => self.ask(by, Step::Inspect).await?,
                Poll::List => self.ask(by, Step::List).await?,
                Poll::Claim(mode) => {
                    let claim = self.claim_of(by, mode, Ttl::SHORT, Of::New, 0);
                    self.ask(by, Step::Claim(claim)).await?
                }
            };
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    fn which(&self, which: Which) -> Option<Had> {
        let back = which.back % self.had.len().max(1);
        let mut had = self.had.get(self.had.len().checked_sub(1 + back)?)?.clone();
        match which.near {
            None => {}
            Some(Near::Owner(byte)) => {
                had.grant.owner = near(had.grant.owner, byte);
                // It may be that of an earlier grant, which only its own client has, and in one mode.
                if let Some(same) = self.had.iter().rev().find(|earlier| earlier.grant.owner == had.grant.owner) {
                    (had.by, had.grant.mode) = (same.by, same.grant.mode);
                }
            }
            Some(Near::NextEpoch) => had.grant.epoch = had.grant.epoch.map(|epoch| epoch + 1),
            Some(Near::EpochBefore) => had.grant.epoch = had.grant.epoch.map(|epoch| epoch.saturating_sub(1)),
            Some(Near::Epoch(bit)) => had.grant.epoch = had.grant.epoch.map(|epoch| epoch ^ 1 << bit),
        }
        Some(had)
    }

    fn claim_of(&self, by: usize, mode: Mode, ttl: Ttl, of: Of, texts: usize) -> Claim {
        let claim = Claim::new(&self.key, mode, ttl.of(&self.claims));
        let (label, reason) = (text(texts).map(Into::into), text(texts + 1).map(Into::into));
        let claim = Claim { label, reason, ..claim };
        let sessions = self.claims.has(Capability::Reentrancy);
        let before = |back: usize| {
            let mut had = self.had.iter().rev().filter(|had| !sessions || had.by == by).map(|had| had.grant.owner);
            had.nth(back)
        };
        let now = self.clock.now();
        let owner = match of {
            Of::Near(byte) => before(0).map(|owner| near(owner, byte)),
            // Where the lease may just have ended, nodes of one store may differ.
            Of::Earlier(back) => before(back).filter(|owner| !self.judge.may_end(*owner, now)),
            Of::New => None,
        };
        // Another claim of a session that holds the key would be another level.
        let held = before(0).filter(|owner| sessions && self.judge.may_hold(*owner, now));
        let owner = held.or(owner).unwrap_or(claim.owner);
        // An owner claims in one mode.
        let claimed = self.had.iter().find(|had| had.grant.owner == owner).map(|had| had.grant.mode);
        Claim { owner, mode: claimed.unwrap_or(mode), ..claim }
    }

    /// Keeps what was granted, for later steps.
    fn note(&mut self, by: usize, heard: &Heard) {
        match (&heard.step, &heard.answer) {
            (Step::Claim(claim) | Step::Downgrade(_, claim), Answer::Attempt(Attempt::Granted { epoch })) => {
                // What an owner took over is not taken over again by a message that comes twice, once it has another lease.
                self.taken.retain(|(_, owner)| *owner != claim.owner);
                // The judge counts for a store that gives no epochs.
                let epoch = epoch.or_else(|| self.judge.epoch_of(claim.owner));
                self.had.push(Had { grant: claim.grant(epoch), by });
            }
            (Step::TakeOver(grant, owner, _), Answer::Statuses(statuses)) if statuses[..] == [LeaseStatus::Held] => {
                self.taken.push((grant.clone(), *owner));
                self.had.push(Had { grant: GrantRef { owner: *owner, ..grant.clone() }, by });
            }
            _ => {}
        }
    }

    /// Somebody waits behind what is there, hears of it when that is ended, and gets the key.
    async fn awaits(&mut self, mode: Mode, ended: Ended, ttl: Duration, beside: Beside) -> Played {
        let in_the_way = self.in_the_way(mode);
        let Some(last) = in_the_way.last().cloned() else { return Ok(()) };
        let by = (last.by + 1) % OPERATOR;
        let other = match beside {
            Beside::Nobody => None,
            Beside::Leaves(further) | Beside::Hears(further) => Some(self.subscribe(by + further).await?),
        };
        let mut listener = self.subscribe(by).await?;
        let (claim, joined) = (Claim { waits: true, ..Claim::new(&self.key, mode, ttl) }, self.clock.now());
        let told = self.ask(by, Step::Claim(claim.clone())).await?;
        // What a queue grants may be told to the waiter alone.
        let all_hear = matches!(beside, Beside::Hears(_)) && !self.claims.has(Capability::Queue);
        let mut other = other.filter(|_| all_hear);
        if let Answer::Attempt(Attempt::Granted { .. }) = told {
            // This machine stood still for so long that nothing was in the way any more.
            return Ok(());
        }
        self.end_all_but_the_last(&in_the_way, ended).await?;
        // What is told of another reader would be taken for what is told of the last.
        listener.forgets();
        other.iter_mut().for_each(Subscribed::forgets);
        self.end(&last, mode, ended).await?;
        if let Answer::Attempt(Attempt::Queued { retry_in, .. }) = told
            && self.clock.now().since(joined) > retry_in
        {
            // A place that nobody confirms may be lost.
            return Err(too_late());
        }
        for heard in std::iter::once(&mut listener).chain(&mut other) {
            self.hears(heard, claim.owner).await?;
        }
        self.judge.has_turns(self.clock.now());
        // A store with a queue has granted the key by itself, for a first lease, which may count from the claim.
        let granted = match told {
            Answer::Attempt(Attempt::Queued { lease, .. }) => Some((Claim { ttl: lease, ..claim.clone() }, joined)),
            _ => None,
        };
        self.ask_as(by, Step::Claim(claim), granted).await.map(drop)
    }

    async fn hears(&mut self, listener: &mut Subscribed, waiter: OwnerId) -> Played {
        let heard = tokio::time::timeout(HEARD_WITHIN, listener.heard.recv()).await;
        if matches!(heard, Ok(Some(_))) {
            return Ok(());
        }
        let (by, name) = (listener.by, self.judge.name(waiter));
        let why = format!("{name} waits, and the subscription of client {by} heard nothing of it for {HEARD_WITHIN:?}");
        Err(End::Wrong(Wrong { clause: "C13", why }, self.told.clone()))
    }

    /// Several wait in the line of the store behind what is there, and each is granted the key in its turn, whoever asks first.
    async fn line(&mut self, waiting: usize, leaves: Option<(usize, Mode)>, ended: Ended, ttl: Duration) -> Played {
        let in_the_way = self.in_the_way(Mode::Exclusive);
        let Some(last) = in_the_way.last().cloned() else { return Ok(()) };
        let (joined, mut line) = (self.clock.now(), VecDeque::<Placed>::new());
        // Beside a reader, another one might not have to wait.
        let leaves = leaves.filter(|(_, mode)| *mode == Mode::Exclusive || last.grant.mode == Mode::Exclusive);
        for (place, by) in (last.by + 1..).take(waiting).map(|by| by % OPERATOR).enumerate() {
            let mode = leaves.filter(|(leaves, _)| *leaves == place).map_or(Mode::Exclusive, |(_, mode)| mode);
            let claim = Claim { waits: true, ..Claim::new(&self.key, mode, ttl) };
            let told = self.ask(by, Step::Claim(claim.clone())).await?;
            match told {
                Answer::Attempt(Attempt::Queued { lease, retry_in, .. }) => {
                    line.push_back((by, claim, lease, retry_in));
                }
                // This machine stood still for so long that nothing was in the way any more.
                _ => return Ok(()),
            }
        }
        if let Some((by, claim, ..)) = leaves.and_then(|(place, _)| line.remove(place)) {
            self.ask(by, Step::Release(claim.grant(None))).await?;
        }
        self.end_all_but_the_last(&in_the_way, ended).await?;
        self.end(&last, Mode::Exclusive, ended).await?;
        while let Some((by, claim, lease, retry_in)) = line.pop_front() {
            if let Some((by, behind, ..)) = line.back() {
                let answer = self.confirms(*by, behind).await;
                // A place that nobody confirms may be lost.
                if self.clock.now().since(joined) > retry_in {
                    return Err(too_late());
                }
                if matches!(answer, Ok(Answer::Attempt(Attempt::Granted { .. }))) {
                    let why = format!("{} waits in front of it", self.judge.name(claim.owner));
                    return Err(End::Wrong(Wrong { clause: "C14", why }, self.told.clone()));
                }
            }
            let granted = Some((Claim { ttl: lease, ..claim.clone() }, joined));
            let answer = self.ask_as(by, Step::Claim(claim), granted).await?;
            self.is_told_who_holds(&line, &answer).await?;
            if let (false, Some(served)) = (line.is_empty(), self.had.last().cloned()) {
                self.ask(by, Step::Release(served.grant)).await?;
            }
        }
        self.judge.has_turns(self.clock.now());
        Ok(())
    }

    /// Asks as somebody who stands in the line.
    async fn confirms(&mut self, by: usize, claim: &Claim) -> Result<Answer, Error> {
        let asks = Asks { by, step: Step::Claim(claim.clone()), when: When::Later(0), met: false, granted: None };
        let (answer, _) = self.send(&asks).await;
        let told = self.describe(&asks, answer.as_ref());
        let _ = writeln!(self.told, "{told}");
        answer
    }

    /// Who waits behind one that was served is told of that one, and no more of who held the key when it came.
    async fn is_told_who_holds(&mut self, line: &VecDeque<Placed>, served: &Answer) -> Played {
        let (Some((by, behind, ..)), Answer::Attempt(Attempt::Granted { epoch })) = (line.back(), served) else {
            return Ok(());
        };
        match self.confirms(*by, behind).await {
            Ok(Answer::Attempt(Attempt::Queued { epoch_of_holder: Some(told), .. })) if Some(told) < *epoch => {
                let why = format!("who waits is told that the holder has the epoch {told}");
                Err(End::Wrong(Wrong { clause: "C1", why }, self.told.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The grants that stay in the way of this mode.
    fn in_the_way(&self, mode: Mode) -> Vec<Had> {
        let had = |(owner, epoch, mode): &(OwnerId, u64, Mode)| {
            let had = self.had.iter().rev().find(|had| had.grant.owner == *owner && had.grant.epoch == Some(*epoch))?;
            Some(Had { grant: GrantRef { mode: *mode, ..had.grant.clone() }, by: had.by })
        };
        self.judge.stay_in_the_way(mode, self.clock.now()).iter().filter_map(had).collect()
    }

    /// Ends the others that are in the way, unless one step ends all.
    async fn end_all_but_the_last(&mut self, in_the_way: &[Had], ended: Ended) -> Played {
        let others = in_the_way.len().saturating_sub(1);
        for had in in_the_way[..others].iter().filter(|_| !matches!(ended, Ended::Forced)) {
            self.ask(had.by, Step::Release(had.grant.clone())).await?;
        }
        Ok(())
    }

    /// Ends what is in the way.
    async fn end(&mut self, last: &Had, mode: Mode, ended: Ended) -> Played {
        if matches!(ended, Ended::Forced) {
            return self.ask(OPERATOR, Step::Force(None)).await.map(drop);
        }
        let step = match (ended, last.grant.epoch) {
            (Ended::ForcedByToken, Some(epoch)) if self.claims.has(Capability::Fencing) => {
                return self.ask(OPERATOR, Step::Force(Some(epoch))).await.map(drop);
            }
            (Ended::Downgraded, _) if mode == Mode::Shared && last.grant.mode == Mode::Exclusive => {
                let claim = Claim::new(&self.key, Mode::Shared, Duration::from_secs(60));
                Step::Downgrade(last.grant.clone(), claim)
            }
            (Ended::ReleasedWithoutEpoch, _) => Step::Release(GrantRef { epoch: None, ..last.grant.clone() }),
            _ => Step::Release(last.grant.clone()),
        };
        self.ask(last.by, step).await.map(drop)
    }

    async fn subscribe(&mut self, by: usize) -> Played<Subscribed> {
        let by = place(by);
        let store = Arc::clone(&self.clients[by].store);
        let subscribed = store.subscribe(&self.key).await;
        let mut subscription = self.answered("subscribe", subscribed)?;
        let (tell, heard) = mpsc::unbounded_channel();
        let listens = async move {
            loop {
                let notification = subscription.next().await;
                if notification == Notification::Ended || tell.send(notification).is_err() {
                    return;
                }
            }
        };
        let _ = writeln!(self.told, "client {by} subscribes");
        Ok(Subscribed { by, heard, task: tokio::spawn(listens).abort_handle() })
    }

    /// Asks one step.
    async fn ask(&mut self, by: usize, step: Step) -> Played<Answer> {
        self.ask_as(by, step, None).await
    }

    /// Asks a claim that the store may have granted before it was asked: for this lease, and not before this moment.
    async fn ask_as(&mut self, by: usize, step: Step, granted: Option<(Claim, Moment)>) -> Played<Answer> {
        let mut answers = self.ask_at_once(&[Asks { by, step, when: When::Later(0), met: false, granted }]).await?;
        Ok(answers.remove(0))
    }

    /// Asks steps at one moment, and those again that have to come again.
    async fn ask_at_once(&mut self, met: &[Asks]) -> Played<Vec<Answer>> {
        let in_turn: Vec<_> = met.chunk_by(|_, next| matches!(next.when, When::Answered)).collect();
        let answers = join_all(in_turn.into_iter().map(|asks| self.send_in_turn(asks))).await;
        let mut heard = Vec::new();
        for (asks, answered) in met.iter().zip(answers.into_iter().flatten()) {
            heard.push(self.heard(asks, answered)?);
        }
        let limit = self.clock.now().plus(WITHIN);
        while let Err(wrong) = self.judge.hear(&heard) {
            let again: Vec<_> = (0..met.len()).filter(|place| self.comes_again(&heard, *place)).collect();
            if again.is_empty() || self.clock.now() > limit {
                self.tell(met, &heard);
                return Err(End::Wrong(wrong, self.told.clone()));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            for place in again {
                // An attempt that came too soon may have left a part of the lease.
                let (answer, asked) = self.send(&met[place]).await;
                let at = Asked { sent: heard[place].at.sent, ..asked };
                heard[place] = self.heard(&met[place], (answer, at))?;
            }
        }
        self.tell(met, &heard);
        for (asks, heard) in met.iter().zip(&heard) {
            self.note(place(asks.by), heard);
        }
        Ok(heard.into_iter().map(|heard| heard.answer).collect())
    }

    async fn send_in_turn(&self, asks: &[Asks]) -> Vec<(Result<Answer, Error>, Asked)> {
        let mut answers = Vec::new();
        for asks in asks {
            answers.push(self.send(asks).await);
        }
        answers
    }

    async fn send(&self, asks: &Asks) -> (Result<Answer, Error>, Asked) {
        if let When::Later(millis @ 1..) = asks.when {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        let sent = self.clock.now();
        let store = &self.clients[place(asks.by)].store;
        let answer = carry_out(store.steps(), &self.key, &self.sent(&asks.step)).await;
        (answer, Asked { sent, answered: self.clock.now(), met: asks.met })
    }

    fn heard(&mut self, asks: &Asks, (answer, at): (Result<Answer, Error>, Asked)) -> Played<Heard> {
        let told = self.describe(asks, answer.as_ref());
        let answer = self.answered(&told, answer)?;
        Ok(match &asks.granted {
            Some((claim, since)) => {
                Heard { step: Step::Claim(claim.clone()), answer, at: Asked { sent: *since, ..at } }
            }
            None => Heard { step: asks.step.clone(), answer, at },
        })
    }

    /// Whether a claim that was not granted has to come again: the clock of the store allows no other epoch yet; where a lease ends in
    /// steps, the rest of one may be in the way for a while; and of claims at one moment, each may be refused for another.
    fn comes_again(&self, heard: &[Heard], place: usize) -> bool {
        let claims = heard.iter().filter(|heard| matches!(heard.step, Step::Claim(_))).count();
        match (&heard[place].step, &heard[place].answer) {
            (_, Answer::Attempt(Attempt::AHEAD_OF_THE_CLOCK)) => true,
            (_, Answer::Attempt(Attempt::Granted { .. })) => false,
            (Step::Claim(_), Answer::Attempt(_)) => claims > 1 || !self.claims.lease_granularity().is_zero(),
            _ => false,
        }
    }

    fn tell(&mut self, met: &[Asks], heard: &[Heard]) {
        for (place, (asks, heard)) in met.iter().zip(heard).enumerate() {
            let when = match (met.len(), place) {
                (1, _) => "",
                (_, 0) => "at one moment ",
                _ => "          and ",
            };
            let told = self.describe(asks, Ok(&heard.answer));
            let _ = writeln!(self.told, "{when}{told}");
        }
    }

    /// What is sent of a step: a store without tokens gets no epochs.
    fn sent(&self, step: &Step) -> Step {
        let mut step = step.clone();
        if !self.claims.has(Capability::Fencing) {
            match &mut step {
                Step::Renew(renewals) => renewals.iter_mut().for_each(|renewal| renewal.grant.epoch = None),
                Step::Release(grant) | Step::TakeOver(grant, ..) | Step::Downgrade(grant, _) => grant.epoch = None,
                Step::Claim(_) | Step::Force(_) | Step::Inspect | Step::List => {}
            }
        }
        step
    }

    fn answered<T>(&mut self, told: &str, answer: Result<T, Error>) -> Played<T> {
        answer.map_err(|error| {
            if error.is_transient() {
                return End::Unclear(error.to_string());
            }
            let _ = writeln!(self.told, "{told}");
            End::Wrong(Wrong { clause: "C12", why: format!("a store that is there said {error:?}") }, self.told.clone())
        })
    }

    /// A grant as it is told: its owner, and its epoch where that is not one that the owner had.
    fn grant(&mut self, grant: &GrantRef) -> String {
        let name = self.judge.name(grant.owner);
        let had = self.had.iter().any(|had| had.grant.owner == grant.owner && had.grant.epoch == grant.epoch);
        match grant.epoch {
            _ if had => name,
            Some(epoch) => format!("{name} with the epoch {epoch}"),
            None => format!("{name}, whatever its epoch"),
        }
    }

    fn describe(&mut self, asks: &Asks, answer: Result<&Answer, &Error>) -> String {
        let asked = match &asks.step {
            Step::Claim(claim) => format!("claim({}, {}, {:?})", self.judge.name(claim.owner), claim.mode, claim.ttl),
            Step::Renew(renewals) => {
                let one = |renewal: &Renewal| format!("{}, {:?}", self.grant(&renewal.grant), renewal.ttl);
                format!("renew({})", renewals.iter().map(one).collect::<Vec<_>>().join("; "))
            }
            Step::Release(grant) => format!("release({})", self.grant(grant)),
            Step::TakeOver(grant, owner, ttl) => {
                format!("take_over({}, by {}, {ttl:?})", self.grant(grant), self.judge.name(*owner))
            }
            Step::Downgrade(writer, claim) => {
                let (from, to) = (self.grant(writer), self.judge.name(claim.owner));
                format!("downgrade({from}, to {to}, {:?})", claim.ttl)
            }
            Step::Force(None) => "force_release()".to_owned(),
            Step::Force(Some(epoch)) => format!("force_release(only the epoch {epoch})"),
            Step::Inspect => "inspect()".to_owned(),
            Step::List => "list()".to_owned(),
        };
        let answered = match answer {
            Ok(Answer::Attempt(attempt)) => format!("{attempt:?}"),
            Ok(Answer::Statuses(statuses)) => format!("{statuses:?}"),
            Ok(Answer::Holders(holders)) => match holders.len() {
                1 => "1 holder".to_owned(),
                more => format!("{more} holders"),
            },
            Ok(Answer::Misfit(what)) => what.clone(),
            Ok(Answer::Unsupported) => "unsupported".to_owned(),
            Err(error) => format!("{error}"),
        };
        format!("{asked} by client {} → {answered}", place(asks.by))
    }
}

/// Whether one of two steps at one moment may see the half of the other, where that is not carried out at one moment.
fn sees_a_half(one: &Step, other: &Step) -> bool {
    match (one, other) {
        (Step::Downgrade(..), Step::Claim(_)) | (Step::Claim(_), Step::Downgrade(..)) => false,
        (Step::Force(_) | Step::List | Step::Inspect | Step::Downgrade(..), _)
        | (_, Step::Force(_) | Step::List | Step::Inspect | Step::Downgrade(..)) => true,
        (Step::Release(one) | Step::TakeOver(one, ..), Step::Release(other) | Step::TakeOver(other, ..)) => {
            one.owner == other.owner
        }
        _ => false,
    }
}

fn too_late() -> End {
    End::Unclear("a position was not confirmed in time".to_owned())
}

fn near(owner: OwnerId, byte: usize) -> OwnerId {
    let mut bytes = *owner.as_bytes();
    bytes[byte % bytes.len()] ^= 1;
    OwnerId::from_random(bytes)
}

async fn carry_out(store: &dyn Backend, key: &LockKey, step: &Step) -> Result<Answer, Error> {
    match step {
        Step::Claim(claim) => store.try_acquire(claim).await.map(Answer::Attempt),
        Step::Renew(renewals) => {
            let answers = store.renew(renewals, WITHIN).await;
            answers.into_iter().collect::<Result<_, _>>().map(Answer::Statuses)
        }
        Step::Release(grant) => store.release(grant).await.map(|status| Answer::Statuses(vec![status])),
        Step::TakeOver(grant, owner, ttl) => {
            store.take_over(grant, *owner, *ttl).await.map(|status| Answer::Statuses(vec![status]))
        }
        Step::Downgrade(writer, claim) => store.downgrade(writer, claim).await.map(Answer::Attempt),
        Step::Force(only) => match store.force_release(key, *only).await {
            Err(refused) if refused.kind() == ErrorKind::Unsupported => Ok(Answer::Unsupported),
            ended => ended.map(|ended| Answer::Holders(ended.holders)),
        },
        Step::Inspect => Ok(Answer::Holders(store.inspect(key).await?.holders)),
        Step::List => listing(store, key).await,
    }
}

/// The holders of a key in the listing of the keys that begin with it, or what is wrong with that listing.
async fn listing(store: &dyn Backend, key: &LockKey) -> Result<Answer, Error> {
    let (mut holders, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(key.as_str(), after.as_ref()).await?;
        if let Some(other) = page.keys.iter().find(|held| !held.key.as_str().starts_with(key.as_str())) {
            return Ok(Answer::Misfit(format!("the listing of what begins with {key:?} has {:?}", other.key)));
        }
        // A key may come on two pages, as a lease that ends meanwhile.
        let here: Vec<_> =
            page.keys.into_iter().filter(|held| held.key == *key).flat_map(|held| held.holders).collect();
        holders.retain(|seen: &Holder| here.iter().all(|again| again.token != seen.token));
        holders.extend(here);
        after = page.next;
        if after.is_none() {
            return Ok(Answer::Holders(holders));
        }
    }
}
