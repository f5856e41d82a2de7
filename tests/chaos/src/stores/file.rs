//! A directory, which several processes use.

use std::fs;
use std::path::Path;

use super::store::Store;

/// The directory of the locks below the folder of a run.
pub(crate) const LOCKS: &str = "locks";

pub(crate) fn start(folder: &Path) -> Result<Store, String> {
    let locks = folder.join(LOCKS);
    fs::create_dir(&locks).map_err(|e| format!("{}: {e}", locks.display()))?;
    let locks = locks.canonicalize().map_err(|e| format!("{}: {e}", locks.display()))?;
    Ok(Store::without_servers(format!("file:{}", locks.display())))
}
