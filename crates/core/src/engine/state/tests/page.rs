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

    fn line(&mut self, event: &str, happens: impl FnOnce(&mut Play) -> &mut Play) {
        let mut told: Vec<_> = happens(&mut self.play).did.drain(..).filter_map(|done| told(&done)).collect();
        if told.is_empty() {
            told.push("-".to_owned());
        }
        let millis = self.play.now.since(self.began).as_millis();
        self.lines.push(format!("{millis:>5}  {event:<36}  {}", told.join(", ")));
    }
}

/// In the words of the page.
fn told(done: &str) -> Option<String> {
    Some(match done.split(' ').next()? {
        what @ ("claim" | "release") => format!("send a {what}"),
        "renew" => "send a renewal".to_owned(),
        "limit" => "the deadline moves".to_owned(),
        "ends:" => format!("the lease {done}"),
        "handed" => return None,
        _ if done.contains("has guard") => format!("{done} of the lease"),
        _ => done.to_owned(),
    })
}

/// One holder after the other in this process, who renews, and gives the key back.
fn alone(page: &mut Page) {
    page.scene("A free key");
    page.line("a calls acquire", |play| play.waits("a"));
    page.line("the store grants it", |play| play.claimed(1, granted(2)).comes("a"));
    page.scene("A waiter of this process: the lease is passed on, without the store");
    page.line("b calls acquire", |play| play.waits("b"));
    page.line("a releases", |play| play.drops("a").comes("b"));
    page.scene("A renewal");
    page.line("a third of the lease is over", |play| play.due(4000));
    page.line("the store has renewed it", |play| play.renewed(HELD));
    page.scene("A release");
    page.line("b releases", |play| play.drops("b"));
    page.line("the store has freed the key", |play| play.released(1, HELD));
}

fn busy(page: &mut Page) {
    page.scene("A busy key: another process holds it");
    page.line("c calls acquire", |play| play.waits("c"));
    page.line("the store says that it is busy", |play| play.claimed(2, BUSY));
    page.line("the subscription has begun", Play::subscribed);
    page.line("the store says that it is busy", |play| play.claimed(3, BUSY));
    page.line("the store notifies: freed", |play| play.notified(Notification::Freed));
    page.line("the store grants it", |play| play.claimed(4, granted(3)).comes("c"));
}

fn loss(page: &mut Page) {
    page.scene("A loss: the store does not answer any more, and the renewal is sent again and again (not shown)");
    page.line("a third of the lease is over", |play| play.due(4000));
    page.line("no answer to the renewal", |play| play.renewed(unanswered()));
    page.line("the deadline has come", |play| {
        while !play.did.iter().any(|done| done.starts_with("ends")) {
            play.did.clear();
            play.passes(1);
            for _ in 0..play.renewals.len() {
                play.renewed(unanswered());
            }
        }
        play
    });
}

#[test]
fn the_page_of_the_engine_shows_what_it_does() {
    let play = Play::of(NOTIFIES);
    let mut page = Page { began: play.now, play, lines: Vec::new() };
    alone(&mut page);
    busy(&mut page);
    loss(&mut page);
    let shown = include_str!("../../mod.rs").lines().skip_while(|line| *line != "//! ```text").skip(1);
    let shown: Vec<_> = shown.take_while(|line| *line != "//! ```").collect();
    let right: Vec<_> = page.lines.iter().map(|line| format!("//! {line}")).collect();
    assert!(shown == right, "engine/mod.rs is to open with\n{}", right.join("\n"));
}
