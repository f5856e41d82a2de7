//! An HTTP service with a lock for each user, which ends without cutting anybody off.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin service -- redis://127.0.0.1 127.0.0.1:8080
//! $ curl -X POST http://127.0.0.1:8080/users/ada/visits
//! ```
//!
//! Requests for one user take turns, on however many machines the service runs; others do not wait. At SIGTERM the service
//! accepts no more, answers what it has accepted, and closes the locks: no key is left for its lease to end.
#![allow(clippy::print_stdout, reason = "it tells what happens")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use leasehold::{ErrorKind, LockOptions, LockerExt, Locks, Wait};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// What the handlers share. The visits stand for a database without transactions.
#[derive(Clone)]
struct Service {
    locks: Locks,
    visits: Arc<Mutex<HashMap<String, u64>>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (url, address) = arguments.next().zip(arguments.next()).ok_or("usage: service URL ADDRESS")?;
    let locks = leasehold::connect(&url).await?;
    let service = Service { locks: locks.clone(), visits: Arc::default() };
    let mut terminated = signal(SignalKind::terminate())?;

    let app = Router::new().route("/users/{user}/visits", post(visit)).with_state(service);
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let shutdown = async move {
        terminated.recv().await;
    };
    axum::serve(listener, app).with_graceful_shutdown(shutdown).await?;
    locks.close().await;
    println!("closed");
    Ok(())
}

/// Counts a visit. A client that goes away drops this future, and with it the work and the lock. So does a loss of the lock.
async fn visit(State(service): State<Service>, Path(user): Path<String>) -> (StatusCode, String) {
    let options = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(10)));
    let work = |_guard| async { count(&service.visits, &user).await };
    match service.locks.with_lock_options(format!("user/{user}"), &options, work).await {
        Ok(visits) => (StatusCode::OK, visits.to_string()),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidKey) => (StatusCode::BAD_REQUEST, error.to_string()),
        // Another request of this user takes too long, or the store fails: to be asked again.
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

/// Reads, takes its time, and writes: two at a time would count one visit.
async fn count(visits: &Mutex<HashMap<String, u64>>, user: &str) -> u64 {
    let known = || visits.lock().unwrap_or_else(PoisonError::into_inner);
    let before = known().get(user).copied().unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(50)).await;
    known().insert(user.to_owned(), before + 1);
    before + 1
}
