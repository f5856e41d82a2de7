use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::membership::join_absent;
use crate::repair::keep_repaired;
use crate::store::Store;

/// The tasks that bring nodes back: those that were absent, and, where the user wants it, those that lost their data. They end
/// with their backend.
#[derive(Debug)]
pub(crate) struct Upkeep(Vec<JoinHandle<()>>);

impl Upkeep {
    /// Must be called inside a runtime.
    pub(crate) fn spawn(store: &Store, auto_repair: bool) -> Self {
        let (nodes, mut tasks) = (&store.nodes, Vec::new());
        if nodes.all().iter().any(|node| node.peer().is_err()) {
            tasks.push(tokio::spawn(join_absent(Arc::clone(nodes))));
        }
        if auto_repair {
            tasks.push(tokio::spawn(keep_repaired(Arc::clone(nodes), store.clock.clone())));
        }
        Self(tasks)
    }

    pub(crate) fn abort(&self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.abort();
    }
}
