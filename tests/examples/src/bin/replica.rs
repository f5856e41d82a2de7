//! A leader among replicas: one of them does the work, and another goes on when it ends.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin replica -- redis://127.0.0.1 host-a
//! ```
//!
//! Start it several times under other names. SIGTERM or Ctrl-C is a hand-off: the work stops, the leader resigns, and the next
//! replica leads at once. After `kill -9` the next one leads when the lease has ended.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::error::Error;
use std::time::Duration;

use leasehold::{Election, FencingToken, GuardHandle, LockOptions};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (url, name) = arguments.next().zip(arguments.next()).ok_or("usage: replica URL NAME")?;
    let locks = leasehold::connect(&url).await?;
    let (mut terminated, mut interrupted) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let shutdown = async {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    };

    // A replica that dies is followed when its lease has ended: after five seconds.
    let options = LockOptions::new().ttl(Duration::from_secs(5));
    let election = Election::new(locks.clone(), "scheduler", &name)?.with_options(options);
    election.run_while_leader_until(shutdown, |term| work(&name, term)).await?;
    println!("{name} resigned");
    locks.close().await;
    Ok(())
}

/// What a leader does. It is dropped at its next `await` when the leadership is lost, or at shutdown. What it writes goes with the
/// term, so that a resource can refuse a leader of before.
async fn work(name: &str, term: GuardHandle) {
    println!("{name} leads in term {}", term.fencing_token().map_or(0, FencingToken::get));
    while term.is_held() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
