//! A client process: several tasks on one locker, and a runtime that ends again and again.

mod hold;
mod recorder;
mod resource;
mod work;

use std::io::BufRead;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use leasehold_chaos::history::{Event, Log};
use leasehold_core::Clock;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use self::hold::Held;
use self::recorder::CANCELLED;
use self::resource::Resource;
use self::work::Task;
use crate::setups::{self, Setup};
use crate::wire::Orders;

pub(crate) use self::hold::Wish;
pub(crate) use self::recorder::Recorder;
pub(crate) use self::work::{ATTACHED, CANCELLED_ACQUIRE};

/// Proofs of what happens to a client.
pub(crate) const RUNTIME_ENDED: &str = "runtime_ended";
pub(crate) const CLOCK_MOVED: &str = "client_clock";

/// So many tasks share a locker.
const TASKS: u32 = 5;

/// One client in so many has a runtime that ends, after so long.
const MORTAL: u32 = 4;
const LIVES: Duration = Duration::from_millis(800);

/// Runs until the runner says `stop`, and ends at once when the runner is gone.
pub(crate) fn run(orders: &Orders) -> Result<(), String> {
    // A client that is stopped does not see that its input ends.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let stopping = Arc::new(AtomicBool::new(false));
    thread::spawn({
        let stopping = Arc::clone(&stopping);
        move || watch_the_runner(&stopping)
    });
    let setup = setups::named(&orders.setup)?;
    let log = Log::open(&orders.folder, orders.client).map_err(|error| error.to_string())?;
    let recorder = Recorder::new(log);
    let mortal = orders.client.is_multiple_of(MORTAL).then(|| {
        let (orders, recorder, stopping) = (orders.clone(), recorder.clone(), Arc::clone(&stopping));
        thread::spawn(move || end_runtimes(setup, &orders, &recorder, &stopping))
    });
    let worked = runtime()?.block_on(work(setup, orders, &recorder, &stopping));
    if let Some(mortal) = mortal {
        mortal.join().map_err(|_| "the thread of the mortal runtimes panicked")?;
    }
    worked
}

fn runtime() -> Result<Runtime, String> {
    Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())
}

fn watch_the_runner(stopping: &AtomicBool) {
    for line in std::io::stdin().lock().lines() {
        if line.is_ok_and(|line| line == "stop") {
            stopping.store(true, Ordering::Relaxed);
        }
    }
    exit(0)
}

async fn work(setup: &Setup, orders: &Orders, recorder: &Recorder, stopping: &Arc<AtomicBool>) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("client {}: {error}", orders.client);
    let locks = setup.connect(&orders.url).await.map_err(|error| failed(&error))?;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..TASKS {
        let resource = Resource::connect(orders.resource).await.map_err(|error| failed(&error))?;
        let mut task = Task::new(number, orders.clone(), locks.of_task(), recorder.clone(), resource);
        let stopping = Arc::clone(stopping);
        tasks.spawn(async move {
            while !stopping.load(Ordering::Relaxed) {
                task.step().await;
            }
        });
    }
    let watching = Resource::connect(orders.resource).await.map_err(|error| failed(&error))?;
    let watch = tokio::spawn(watch_the_clock(watching));
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| failed(&error))?;
    }
    watch.abort();
    locks.close().await;
    Ok(())
}

/// Tells the runner when the wall clock has jumped.
async fn watch_the_clock(mut runner: Resource) {
    let clock = Clock::system();
    let (start, since_1970) = (clock.now(), clock.since_1970());
    let mut ahead = 0;
    loop {
        sleep(Duration::from_millis(50)).await;
        let expected = since_1970 + clock.now().since(start);
        let is_ahead = i128::try_from(clock.since_1970().as_millis()).unwrap_or_default()
            - i128::try_from(expected.as_millis()).unwrap_or_default();
        if (is_ahead - ahead).abs() > 500 {
            ahead = is_ahead;
            runner.prove(CLOCK_MOVED).await;
        }
    }
}

/// Again and again connects on a runtime of its own, which ends while locks are held and waited for. The guards are dropped
/// when it is gone.
fn end_runtimes(setup: &Setup, orders: &Orders, recorder: &Recorder, stopping: &AtomicBool) {
    while !stopping.load(Ordering::Relaxed) {
        let Ok(runtime) = runtime() else { return };
        let left = runtime.block_on(async {
            let locks = setup.connect(&orders.url).await.ok()?;
            let resource = Resource::connect(orders.resource).await.ok()?;
            let mut task = Task::new(TASKS, orders.clone(), locks.of_task(), recorder.clone(), resource);
            let (mut held, waiting) = task.take_until_the_runtime_ends().await;
            sleep(LIVES).await;
            if held.iter_mut().any(Held::look) {
                task.resource.prove(RUNTIME_ENDED).await;
            }
            Some((held, waiting))
        });
        runtime.shutdown_background();
        let (held, waiting) = left.unwrap_or_default();
        for mut held in held {
            held.give_up();
        }
        for op in waiting {
            op.log(Event::Refused { error: CANCELLED.to_owned() });
        }
    }
}
