//! Servers of a test, which are started beside its runtime.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::launch::Process;

/// Runs work that blocks beside the runtime of the test.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(work).await.unwrap_or_else(|failed| match failed.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(cancelled) => panic!("{cancelled}"),
    })
}

/// A temporary folder for the files of servers of this kind, in this place.
pub(crate) fn folder(kind: &str, place: &Path) -> Result<TempDir, String> {
    let folder = tempfile::Builder::new().prefix(&format!("leasehold-{kind}-")).tempdir_in(place);
    folder.map_err(|e| format!("{}: {e}", place.display()))
}

/// Starts servers of this kind with their files in a temporary folder, which has to be dropped after them.
pub(crate) async fn started<S: Send + 'static>(
    kind: &str,
    place: &Path,
    launch: impl FnOnce(&Path) -> Result<S, String> + Send + 'static,
) -> Result<(S, Arc<TempDir>), String> {
    let folder = folder(kind, place)?;
    blocking(move || launch(folder.path()).map(|servers| (servers, Arc::new(folder)))).await
}

/// Starts a server that has ended again, on its data and on the same port.
pub(crate) async fn restart(process: &mut Process) -> Result<(), String> {
    let launch = process.launch();
    *process = blocking(move || launch.start(&[])).await?;
    Ok(())
}
