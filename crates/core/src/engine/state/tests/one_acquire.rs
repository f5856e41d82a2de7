//! The page that `engine/mod.rs` opens with is what the state machine does.

use super::*;

/// A play that is written down: what happens, and what the state machine has done about it.
struct Page {
    play: Play,
    began: Moment,
    lines: Vec<String>,
}

impl Page {
    fn scene(&mut self, title: &str) {
        self.lines.push(title.to_owned());
        self.began = self.play.now;
    }

    /// Writes down what has come of an event, and returns that.
    fn line(&mut self, event: &str) -> Actions<&'static str, Cell> {
        let done = std::mem::take(&mut self.play.out);
        let mut told: Vec<_> = done.iter().filter_map(tell).collect();
        if told.is_empty() {
            told.push("-".to_owned());
        }
        let millis = self.play.now.since(self.began).as_millis();
        self.lines.push(format!("{millis:>5}  {event:<36}  {}", told.join(", ")));
        done
    }

    fn waits(&mut self, member: Member, who: &'static str) -> (WaiterId, Actions<&'static str, Cell>) {
        let id = self.play.waits(member, who);
        (id, self.line(&format!("{who} calls acquire")))
    }

    fn granted(&mut self, id: WaiterId, request: RequestId, epoch: u64) -> Granted<Cell> {
        self.play.grant(request, epoch);
        self.comes(id, "the store grants it")
    }

    /// Writes down an event by which this caller has the lock, and lets it come for that.
    fn comes(&mut self, id: WaiterId, event: &str) -> Granted<Cell> {
        let granted = self.line(event).into_iter().find_map(|action| match action {
            Action::Wake(_, Outcome::Granted(granted)) => Some(granted),
            _ => None,
        });
        let granted = granted.expect("a caller is told");
        assert_eq!(self.play.collect(id, &granted), Collected::Yes);
        granted
    }

    /// Lets time pass until something is done, and writes that down.
    fn due(&mut self, event: &str) -> Actions<&'static str, Cell> {
        while self.play.out.is_empty() {
            self.play.now = self.play.now.max(self.play.state.next());
            self.play.apply(Event::Tick);
        }
        self.line(event)
    }
}

fn tell(action: &Done) -> Option<String> {
    Some(match action {
        Action::Send { request, .. } => match request {
            Request::Claim(..) => "send a claim".to_owned(),
            Request::Release(..) => "send a release".to_owned(),
            Request::Renew(_) => "send a renewal".to_owned(),
            Request::Subscribe(..) => "subscribe".to_owned(),
            other => format!("send {other:?}"),
        },
        Action::Wake(who, Outcome::Granted(granted)) => format!("{who} has guard {} of the lease", granted.number),
        Action::Wake(who, other) => format!("{who} is told {other:?}"),
        Action::Limit(..) => "the deadline moves".to_owned(),
        Action::End { end, .. } => format!("the lease ends: {end:?}"),
        Action::HandedOff => return None,
        Action::Unsubscribe(_) => "unsubscribe".to_owned(),
        other => format!("{other:?}"),
    })
}

fn request(done: &Actions<&'static str, Cell>) -> RequestId {
    let mut ids = done.iter().rev().filter_map(|action| match action {
        Action::Send {
            request: Request::Claim(id, _) | Request::Release(id, _) | Request::Subscribe(id, _), ..
        } => Some(*id),
        _ => None,
    });
    ids.next().expect("something is sent")
}

/// One holder after the other in this process, who renews, and gives the key back.
fn alone(page: &mut Page, member: Member) {
    page.scene("A free key");
    let (a, done) = page.waits(member, "a");
    let held = page.granted(a, request(&done), 2);

    page.scene("A waiter of this process: the lease is passed on, without the store");
    let (b, _) = page.waits(member, "b");
    page.play.release_guard(held.guard, None);
    let passed = page.comes(b, "a releases");

    page.scene("A renewal");
    let done = page.due("a third of the lease is over");
    let Some(Action::Send { request: Request::Renew(batch), .. }) = done.into_iter().next() else {
        panic!("a renewal")
    };
    page.play.apply(Event::Renewed(batch, vec![Ok(LeaseStatus::Held)]));
    page.line("the store has renewed it");

    page.scene("A release");
    page.play.release_guard(passed.guard, None);
    let done = page.line("b releases");
    page.play.released(request(&done), Ok(LeaseStatus::Held));
    page.line("the store has freed the key");
}

fn busy(page: &mut Page, member: Member) {
    page.scene("A busy key: another process holds it");
    let (c, done) = page.waits(member, "c");
    page.play.answer(request(&done), Ok(BUSY));
    let subscription = request(&page.line("the store says that it is busy"));
    page.play.apply(Event::Subscribed { request: subscription, begun: true });
    let done = page.line("the subscription has begun");
    page.play.answer(request(&done), Ok(BUSY));
    page.line("the store says that it is busy");
    page.play.apply(Event::Notified { request: subscription, notification: Notification::Freed });
    let done = page.line("the store notifies: freed");
    page.granted(c, request(&done), 3);
}

fn loss(page: &mut Page) {
    page.scene("A loss: the store does not answer any more, and the renewal is sent again and again (not shown)");
    for round in 0.. {
        let done = page.due(if round == 0 { "a third of the lease is over" } else { "the deadline has come" });
        if done.iter().any(|action| matches!(action, Action::End { .. })) {
            break;
        }
        for action in done {
            if let Action::Send { request: Request::Renew(batch), .. } = action {
                page.play.apply(Event::Renewed(batch, vec![Err(lost())]));
            }
        }
        if round == 0 {
            page.line("no answer to the renewal");
        } else {
            page.lines.pop();
        }
    }
}

#[test]
fn the_page_of_the_engine_shows_what_it_does() {
    let (play, member) = Play::with(Traits { notifies: true, ..PLAIN });
    let mut page = Page { began: play.now, play, lines: Vec::new() };
    alone(&mut page, member);
    busy(&mut page, member);
    loss(&mut page);
    let shown = include_str!("../../mod.rs").lines().skip_while(|line| *line != "//! ```text").skip(1);
    let shown: Vec<_> = shown.take_while(|line| *line != "//! ```").collect();
    let right: Vec<_> = page.lines.iter().map(|line| format!("//! {line}")).collect();
    assert!(shown == right, "engine/mod.rs is to open with\n{}", right.join("\n"));
}
