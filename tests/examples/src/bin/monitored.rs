//! Metrics of locks for Prometheus, and a log that names the holder when others wait long.
//!
//! ```console
//! $ cargo run -p leasehold-examples --bin monitored -- redis://127.0.0.1 127.0.0.1:9000
//! $ curl http://127.0.0.1:9000/metrics
//! ```
//!
//! What is measured and logged is in `docs/observability.md`; a dashboard and alert rules are in `docs/dashboards`.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use leasehold::{LockOptions, Locker, LockerExt};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

/// From a hand-off within a process to a wait that somebody should look at. Without buckets, the exporter computes quantiles that
/// cannot be added up over processes.
const BUCKETS: [f64; 12] = [0.0001, 0.001, 0.005, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (url, address) = arguments.next().zip(arguments.next()).ok_or("usage: monitored URL ADDRESS")?;
    let address: SocketAddr = address.parse()?;
    tracing_subscriber::fmt().with_max_level(LevelFilter::WARN).with_writer(std::io::stderr).init();
    let exporter = PrometheusBuilder::new().with_http_listener(address);
    exporter.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?.install()?;

    let locks = leasehold::connect(&url).await?;
    // For all acquisitions of this program.
    let defaults = LockOptions::new().ttl(Duration::from_secs(2)).warn_after(Duration::from_secs(1));
    let works = locks.clone().with_defaults(defaults);
    let long = async { tokio::join!(work(&works, "long", 1500), work(&works, "long", 1500)).0 };
    let short = async { tokio::join!(work(&works, "short", 1), work(&works, "short", 1)).0 };
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminated.recv() => {}
        () = long => {}
        () = short => {}
    }
    locks.close().await;
    Ok(())
}

/// Works under a lock for so many milliseconds, again and again. A failure is in the metrics and in the log.
async fn work(locks: &impl Locker, key: &str, millis: u64) {
    loop {
        let options = LockOptions::new().reason("the work of an example");
        let work = |_guard| tokio::time::sleep(Duration::from_millis(millis));
        if locks.with_lock_options(key, &options, work).await.is_err() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}
