//! `leasehold watch`: the held keys as a table that follows them, or as lines of JSON.

// The command line,
mod args;
// what is made of the store's answers: lines,
mod lines;
// or the state of the table and what is done to it,
mod column;
mod row;
mod state;
mod table;
// and its picture on the screen.
mod draw;
mod grid;
mod panel;
#[cfg(test)]
mod samples;
mod screen;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind::UnexpectedEof, IsTerminal};
use std::pin::Pin;
use std::time::{Duration, UNIX_EPOCH};

use clap::ColorChoice;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures::StreamExt;
use futures::future::OptionFuture;
use leasehold::{Admin, Clock, Holders, LockKey, Locks};
use rustix::process::Signal;

pub(crate) use self::args::WatchArgs;
use self::grid::Look;
use self::lines::Lines;
use self::row::{Now, Row};
use self::screen::Screen;
use self::state::{Effect, Grant, State};
use crate::admin::{each_held, print};
use crate::args::StoreArgs;
use crate::choice::{Purpose, choose, close};
use crate::exit::Failure;
use crate::signals::Signals;
use crate::stopwatch::Stopwatch;
use crate::terminal::stop_our_job;
use crate::wording;

/// How often the table is drawn although nothing came: the times in it go on.
const TICK: Duration = Duration::from_millis(500);

/// How long a forced release that is under way is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// `leasehold watch`: shows what is held until the user has seen enough.
pub(crate) async fn watch(args: &WatchArgs, store: &StoreArgs) -> Result<u8, Failure> {
    if !(args.json || io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::Usage("the table needs a terminal; without one, use --json".to_owned()));
    }
    let mut signals = Signals::catch()?;
    let choice = choose(store)?;
    let store = signals.or(choice.connect(Purpose::Look)).await??;
    let watched = if args.json {
        as_lines(args, &store, &mut signals).await
    } else {
        as_table(args, &store, choice.shown(), &mut signals).await
    };
    close(&store).await;
    watched
}

/// Prints what changes, until nobody reads it or a signal comes.
async fn as_lines(args: &WatchArgs, store: &Locks, signals: &mut Signals) -> Result<u8, Failure> {
    let stopwatch = Stopwatch::start();
    let (mut lines, mut pause) = (Lines::default(), Duration::ZERO);
    loop {
        let answer = signals.or(ask(args, store, &stopwatch, pause)).await?;
        pause = answer.pause(args);
        let text = match answer.held {
            Ok(held) => lines.of(held.into_iter().map(|(key, (holders, _))| (key, holders)).collect()),
            Err(error) => lines.of_failure(&Failure::Store(error).to_string()),
        };
        if !lines::write(&text)? {
            return Ok(0);
        }
    }
}

/// Shows the table, and says afterwards what was released by force.
async fn as_table(args: &WatchArgs, store: &Locks, address: String, signals: &mut Signals) -> Result<u8, Failure> {
    let look =
        Look { store: address, prefix: args.prefix.clone(), interval: args.interval, colour: wants_colour(args.color) };
    // What the driver of the terminal leaves out by itself, where the environment says NO_COLOR.
    crossterm::style::force_color_output(look.colour);
    let mut state = State::default();
    let mut forcing = None;
    let ended = {
        let mut screen = Screen::open().map_err(Failure::System)?;
        signals.catch_those_of_a_terminal()?;
        follow(args, store, &look, &mut screen, (&mut state, &mut forcing), signals).await
    };
    if let Some(forcing) = forcing {
        // What was sent may be carried out, so its outcome is told.
        match tokio::time::timeout(PATIENCE, forcing).await {
            Ok(outcome) => state.forced(outcome),
            Err(_) => state.forced("a forced release was not answered".to_owned()),
        }
    }
    state.done.push(String::new());
    print(&state.done.join("\n"))?;
    ended
}

/// A forced release that is under way, and its outcome in words.
type Forcing<'a> = Pin<Box<dyn Future<Output = String> + 'a>>;

async fn follow<'a>(
    args: &WatchArgs,
    store: &'a Locks,
    look: &Look,
    screen: &mut Screen,
    (state, forcing): (&mut State, &mut Option<Forcing<'a>>),
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let stopwatch = Stopwatch::start();
    // The question goes on while something else comes.
    let mut asking = Box::pin(ask(args, store, &stopwatch, Duration::ZERO));
    // It reads in a thread, which ends with it.
    let mut events = EventStream::new();
    loop {
        let now = Now { since: stopwatch.read(), wall: UNIX_EPOCH + Clock::system().since_1970() };
        screen.draw(|frame| draw::draw(frame, state, look, now)).map_err(Failure::System)?;
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::WINCH => {}
                Signal::TSTP => screen.suspend(stop_our_job).map_err(Failure::System)?,
                signal => return Err(Failure::Interrupted(signal)),
            },
            // Its end is an error: without keys nobody could quit.
            event = events.next() => match event.unwrap_or_else(|| Err(UnexpectedEof.into())).map_err(Failure::System)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match state.pressed(key) {
                    Some(Effect::Quit) => return Ok(0),
                    Some(Effect::Suspend) => screen.suspend(stop_our_job).map_err(Failure::System)?,
                    Some(Effect::Redraw) => screen.forget().map_err(Failure::System)?,
                    Some(Effect::ForceRelease(_)) if forcing.is_some() => {
                        state.message = Some("another forced release is not answered yet".to_owned());
                    }
                    Some(Effect::ForceRelease(grant)) => *forcing = Some(Box::pin(force_release(store, grant))),
                    None => {}
                },
                _ => {}
            },
            answer = &mut asking => {
                asking.set(ask(args, store, &stopwatch, answer.pause(args)));
                take(state, answer, stopwatch.read());
            }
            Some(outcome) = OptionFuture::from(forcing.as_mut()) => {
                *forcing = None;
                state.forced(outcome);
                asking.set(ask(args, store, &stopwatch, Duration::ZERO));
            }
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

/// Everything that is held under a prefix, as the store said.
struct Answer {
    /// Each key with its holders, and when the page came on which they were. Or why the store did not say.
    held: leasehold::Result<BTreeMap<LockKey, (Holders, Duration)>>,
    /// How long it took.
    took: Duration,
}

impl Answer {
    /// How long not to ask again: for as long as the answer took at least, so that a slow store is idle half of the time.
    fn pause(&self, args: &WatchArgs) -> Duration {
        args.interval.max(self.took)
    }
}

/// Asks the store, after a pause, what is held.
async fn ask(args: &WatchArgs, store: &Locks, stopwatch: &Stopwatch, pause: Duration) -> Answer {
    tokio::time::sleep(pause).await;
    let began = stopwatch.read();
    let mut held = BTreeMap::new();
    let show = |holders: Holders| drop(held.insert(holders.key.clone(), (holders, stopwatch.read())));
    let listed = each_held(store, &args.prefix, show).await;
    Answer { held: listed.map(|()| held), took: stopwatch.read().saturating_sub(began) }
}

fn take(state: &mut State, answer: Answer, now: Duration) {
    let rows = answer.held.map_err(|error| Failure::Store(error).to_string());
    let rows = rows.map(|held| held.into_values().filter_map(|(holders, came)| Row::new(holders, came)).collect());
    state.answered(rows, now, answer.took);
}

/// Releases one grant by force, and says in words what came of it. Who was granted the key since is spared by the store.
async fn force_release(store: &Locks, grant: Grant) -> String {
    let key = wording::shown(grant.key.as_str());
    let Some(token) = grant.holder.token else {
        return format!("nothing was released: the store shows no token of the grant of {key}");
    };
    let released = match store.force_release_grant(&grant.key, token).await {
        Ok(released) => released,
        Err(error) => return format!("{key}: {}", Failure::Store(error)),
    };
    if let Some(who) = wording::holders(&released) {
        return format!("released by force: {key} was taken from {who}");
    }
    // For people to read: it may have changed hands again by then.
    let now = match store.inspect(&grant.key).await {
        Ok(seen) => wording::holders(&seen).map_or_else(|| "is free".to_owned(), |who| format!("is held by {who}")),
        Err(error) => format!("is not known: {}", Failure::Store(error)),
    };
    format!("nothing was released: that grant has ended, and {key} {now}")
}

fn wants_colour(when: ColorChoice) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match when {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
    }
}
