//! The line of those who wait, at its ends and in its middle.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, Clock, LeaseStatus};
use leasehold_redis_single::{LockerExt, RedisSingleBackend, Result};
use leasehold_testkit::redis::{Answer, Server};
use leasehold_testkit::{needs, test};

use crate::waiters::{
    FENCE, LINE, LOCK, claim, has_it, holds, leaves, listening, locker, places, rewrite, takes_a_place,
};

const NOBODY: &str = "!{leasehold:}:inbox:nobody";

/// The places are from so long ago that none of them counts.
async fn forgets_to_ask(server: &Server) {
    rewrite(server, "", 2, "1").await;
    server.ask(&["HSET", LINE, "latest", "1"]).await;
}

#[test]
async fn where_no_place_counts_one_waiter_that_is_subscribed_has_the_key_and_no_other_before_it_asks() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (store, others) = (listening(&server).await?, locker(&server).await?);
    // Of these nobody knows whether they are.
    for inbox in ["-", "?{leasehold:}:inbox:nobody", NOBODY] {
        let holder = holds(&store).await?;
        takes_a_place(&store).await?;
        rewrite(&server, "", 3, inbox).await;
        forgets_to_ask(&server).await;
        assert_eq!(leaves(&store, &holder).await?, LeaseStatus::Held);
        assert_eq!(server.ask(&["EXISTS", LOCK, LINE]).await.number(), 0, "{inbox}");
    }
    let holder = holds(&store).await?;
    let first = takes_a_place(&store).await?;
    takes_a_place(&store).await?;
    forgets_to_ask(&server).await;
    assert_eq!(leaves(&store, &holder).await?, LeaseStatus::Held);
    assert!(has_it(&server, &first).await, "as if it was dead, and not the server");
    // All of them may have died: the others are kept from the key by one of them.
    assert_eq!(leaves(&store, &first).await?, LeaseStatus::Held);
    assert!(others.try_lock("k").await?.is_some());
    Ok(())
}

/// Puts so many into the line whose time is over.
async fn dead_waiters(server: &Server, count: usize) {
    let script = "local line, count = KEYS[1], tonumber(ARGV[1]) \
        local function owner(n) return n > 0 and n <= count and string.format('%032x', n) or '-' end \
        for n = 1, count do \
          local place = owner(n - 1) .. ' ' .. owner(n + 1) .. ' 1 - 3000 60000 }' \
          redis.call('HSET', line, owner(n), place) \
        end \
        redis.call('HSET', line, 'first', owner(1), 'last', owner(count))";
    server.ask(&["EVAL", script, "1", LINE, &count.to_string()]).await;
}

#[test]
async fn nobody_overtakes_while_the_places_of_thousands_of_dead_waiters_are_removed() -> Result<()> {
    const DEAD: usize = 3500;
    let server = needs("redis-server", Server::start(&[]).await);
    let (store, others) = (listening(&server).await?, locker(&server).await?);
    let holder = holds(&store).await?;
    dead_waiters(&server, DEAD).await;
    let next = takes_a_place(&store).await?;
    assert_eq!(places(&server).await, DEAD + 1);
    assert_eq!(leaves(&store, &holder).await?, LeaseStatus::Held);
    assert!(server.calls("hget").await < 1100, "too many steps in one go");
    let mut tries = 0;
    while !has_it(&server, &next).await {
        assert!(others.try_lock("k").await?.is_none(), "it overtook those in line");
        tries += 1;
        assert!(tries <= 4, "it does not get any shorter");
    }
    assert_eq!(leaves(&store, &next).await?, LeaseStatus::Held);
    assert_eq!(server.ask(&["KEYS", "*"]).await, Answer::List(vec![Answer::Text(FENCE.into())]));
    Ok(())
}

#[test]
async fn what_is_written_of_dead_waiters_next_to_each_other_is_written_once() -> Result<()> {
    const DEAD: usize = 500;
    let server = needs("redis-server", Server::start(&[]).await);
    let store = listening(&server).await?;
    let writes = async || server.calls("hset").await + server.calls("hdel").await;
    for (first_stays, last_lives) in [(false, true), (false, false), (true, true), (true, false)] {
        let holder = holds(&store).await?;
        dead_waiters(&server, DEAD).await;
        let first = format!("{:032x}", 1);
        if first_stays {
            // It asked a moment ago, and nobody receives what it is sent.
            let script = "local now = redis.call('TIME')[1] * 1000 \
                redis.call('HSET', KEYS[1], ARGV[1], '- ' .. ARGV[2] .. ' ' .. now + 4000 .. ' !nobody 3000 60000 }')";
            server.ask(&["EVAL", script, "1", LINE, &first, &format!("{:032x}", 2)]).await;
        }
        let last = takes_a_place(&store).await?;
        if !last_lives {
            assert_eq!(leaves(&store, &last).await?, LeaseStatus::NotHeld);
        }
        let before = writes().await;
        assert_eq!(leaves(&store, &holder).await?, LeaseStatus::Held);
        let written = writes().await - before;
        assert!(written < 8, "{written} commands that write: {first_stays} {last_lives}");
        let in_line: Vec<_> = in_order(&server).await.into_iter().filter(|owner| !owner.is_empty()).collect();
        assert_eq!(in_line, if first_stays { vec![first] } else { Vec::new() });
        assert_eq!(places(&server).await, usize::from(first_stays));
        assert_eq!(has_it(&server, &last).await, last_lives);
        leaves(&store, &last).await?;
        server.ask(&["DEL", LINE]).await;
    }
    Ok(())
}

/// The owners in line, from one end to the other.
async fn in_order(server: &Server) -> Vec<String> {
    let (mut order, mut owner) = (Vec::new(), server.ask(&["HGET", LINE, "first"]).await.text().to_owned());
    while owner != "-" && order.len() < 100 {
        let place = server.ask(&["HGET", LINE, &owner]).await;
        order.push(owner.clone());
        place.text().split(' ').nth(1).unwrap_or("-").clone_into(&mut owner);
    }
    order
}

#[test]
async fn whatever_is_missing_in_a_damaged_queue_waiters_that_ask_again_are_before_later_ones() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let store = listening(&server).await?;
    let holder = holds(&store).await?;
    for torn in ["first", "last", "first last", "0", "1", "2", "0 2"] {
        for comes_first in [false, true] {
            server.ask(&["DEL", LINE]).await;
            let waiting = [takes_a_place(&store).await?, takes_a_place(&store).await?, takes_a_place(&store).await?];
            for field in torn.split(' ') {
                let owner = field.parse::<usize>().map(|index| waiting[index].owner.to_hex());
                server.ask(&["HDEL", LINE, &owner.unwrap_or_else(|_| field.to_owned())]).await;
            }
            if comes_first {
                takes_a_place(&store).await?;
            }
            // The first round may find out, the second puts in order who was deleted by one behind it.
            for claim in waiting.iter().chain(&waiting) {
                assert!(matches!(store.try_acquire(claim).await?, Attempt::Queued { .. }));
            }
            let last = takes_a_place(&store).await?.owner.to_hex();
            let order = in_order(&server).await;
            assert_eq!(order.len(), places(&server).await, "{torn}: a place is linked to nothing");
            let all_in_line = waiting.iter().all(|claim| order.contains(&claim.owner.to_hex()));
            assert!(all_in_line && order.last() == Some(&last), "{torn}: {order:?}");
        }
    }
    assert_eq!(leaves(&store, &holder).await?, LeaseStatus::Held);
    Ok(())
}

/// Random numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }
}

/// One who stands in line, and whether its inbox is heard.
type Waiter = (Claim, bool);

/// Who is served, of those in line, when this one asks.
fn next_of(line: &mut Vec<Waiter>, asking: Option<&Claim>) -> Option<Claim> {
    let is_next = |(claim, heard): &Waiter| *heard || asking.is_some_and(|asking| asking.owner == claim.owner);
    line.iter().position(is_next).map(|place| line.remove(place).0)
}

/// A key, its holder and its line, and what they ought to be.
struct Model<'a> {
    server: &'a Server,
    store: &'a RedisSingleBackend,
    holder: Option<Claim>,
    /// Whose lease is over, and who has not released yet.
    late: Option<Claim>,
    line: Vec<Waiter>,
}

impl Model<'_> {
    async fn step(&mut self, dice: &mut Dice) -> Result<()> {
        match (dice.below(6), self.holder.clone()) {
            (0 | 1, Some(_)) if self.line.len() < 8 => self.line.push((takes_a_place(self.store).await?, true)),
            (comes, None) if comes < 2 => self.comes_to_a_free_key(comes == 0).await?,
            (2, holder) if !self.line.is_empty() => {
                let (leaving, _) = self.line.remove(dice.below(self.line.len()));
                assert_eq!(leaves(self.store, &leaving).await?, LeaseStatus::NotHeld);
                // Whoever comes to a free key serves the first in line.
                self.holder = if holder.is_none() { next_of(&mut self.line, None) } else { holder };
            }
            (3, _) if !self.line.is_empty() => {
                let chosen = dice.below(self.line.len());
                let (claim, heard) = &mut self.line[chosen];
                rewrite(self.server, &claim.owner.to_hex(), 3, NOBODY).await;
                *heard = false;
            }
            (4, Some(_)) if dice.below(2) == 0 => {
                // As at the end of its lease.
                self.server.ask(&["DEL", LOCK]).await;
                self.late = self.holder.take();
            }
            (4, Some(claim)) => {
                assert_eq!(leaves(self.store, &claim).await?, LeaseStatus::Held);
                self.holder = next_of(&mut self.line, None);
            }
            (4, None) => {
                let Some(late) = self.late.take() else { return Ok(()) };
                assert_eq!(leaves(self.store, &late).await?, LeaseStatus::NotHeld);
                self.holder = next_of(&mut self.line, None);
            }
            (5, _) if !self.line.is_empty() => self.asks_again(dice.below(self.line.len())).await?,
            _ => {}
        }
        Ok(())
    }

    /// It serves the first in line, and is told of that one's epoch; where nobody can be served, it has the key.
    async fn comes_to_a_free_key(&mut self, waits: bool) -> Result<()> {
        let claim = Claim { waits, ..claim() };
        let (served, attempt) = (next_of(&mut self.line, None), self.store.try_acquire(&claim).await?);
        match (&served, attempt) {
            (None, Attempt::Granted { .. }) => self.holder = Some(claim),
            (Some(_), Attempt::Busy { .. }) if !waits => self.holder = served,
            (Some(_), Attempt::Queued { epoch_of_holder: Some(epoch), .. }) if waits => {
                let entry = self.server.ask(&["GET", LOCK]).await;
                assert_eq!(entry.text().split(' ').nth(1), Some(&*epoch.to_string()));
                self.holder = served;
                self.line.push((claim, true));
            }
            (_, attempt) => panic!("{attempt:?} beside {served:?}"),
        }
        Ok(())
    }

    async fn asks_again(&mut self, chosen: usize) -> Result<()> {
        let claim = self.line[chosen].0.clone();
        let attempt = self.store.try_acquire(&claim).await?;
        if self.holder.is_none() {
            self.holder = next_of(&mut self.line, Some(&claim));
        }
        match self.line.iter_mut().find(|(waits, _)| waits.owner == claim.owner) {
            Some((_, heard)) => {
                assert!(matches!(attempt, Attempt::Queued { .. }), "{attempt:?}");
                *heard = true;
            }
            None => assert!(matches!(attempt, Attempt::Granted { .. }), "{attempt:?}"),
        }
        Ok(())
    }

    async fn is_true(&self) -> bool {
        let expected = self.holder.as_ref().map(|claim| claim.owner.to_hex()).unwrap_or_default();
        let seen = self.server.ask(&["GET", LOCK]).await;
        seen.text().get(..32).unwrap_or_default() == expected && places(self.server).await == self.line.len()
    }
}

#[test]
async fn whatever_they_do_they_are_served_in_the_order_in_which_they_came() -> Result<()> {
    let server = needs("redis-server", Server::start(&[]).await);
    let (clock, store, mut rounds) = (Clock::system(), listening(&server).await?, 0);
    for seed in 0..1000 {
        if rounds == 60 {
            return Ok(());
        }
        let (mut dice, begun) = (Dice(seed), clock.now());
        server.ask(&["FLUSHALL"]).await;
        let mut model = Model { server: &server, store: &store, holder: None, late: None, line: Vec::new() };
        for step in 0..40 {
            model.step(&mut dice).await?;
            let is_true = model.is_true().await;
            // A place counts for three seconds: a machine that stalls so long makes another story of it.
            if clock.now().since(begun) > Duration::from_secs(2) {
                break;
            }
            assert!(is_true, "seed {seed}, step {step}: {:?} holds it, before {:?}", model.holder, model.line);
            rounds += u32::from(step == 39);
        }
    }
    panic!("the machine stalls all the time");
}
