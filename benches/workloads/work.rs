//! What a server has done, in figures.

use std::collections::BTreeMap;

use crate::job::runtime;
use crate::load::Result;
use crate::log::{CALLS, COMMANDS, CONNECTIONS, DEADLOCKS, MEMORY, SERVER_CPU};

/// What a server has done since it began, and how much it has now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) cpu_micros: f64,
    /// Calls of commands or statements, also of those that a script makes.
    pub(crate) calls: f64,
    /// Those that the clients sent, where they can be told from others.
    pub(crate) commands: Option<f64>,
    pub(crate) deadlocks: Option<f64>,
    pub(crate) clients: Option<f64>,
    pub(crate) memory_megabytes: Option<f64>,
}

impl Work {
    /// The figures of so many cycles since the clients had connected.
    pub(crate) fn figures(self, connected: Self, cycles: usize) -> BTreeMap<&'static str, f64> {
        let each = |now: f64, then: f64| (now - then) / cycles.max(1) as f64;
        let mut figures = BTreeMap::from([
            (SERVER_CPU, each(self.cpu_micros, connected.cpu_micros)),
            (CALLS, each(self.calls, connected.calls)),
        ]);
        let since = |now: Option<f64>, then: Option<f64>| now.zip(then).map(|(now, then)| now - then);
        let commands = since(self.commands, connected.commands).map(|sent| each(sent, 0.0));
        figures.extend(commands.map(|commands| (COMMANDS, commands)));
        figures.extend(since(self.deadlocks, connected.deadlocks).map(|deadlocks| (DEADLOCKS, deadlocks)));
        figures.extend(connected.clients.map(|clients| (CONNECTIONS, clients)));
        figures.extend(connected.memory_megabytes.map(|memory| (MEMORY, memory)));
        figures
    }

    pub(crate) fn shared_by(self, nodes: f64) -> Self {
        Self { cpu_micros: self.cpu_micros / nodes, calls: self.calls / nodes, ..self }
    }
}

/// Runs the future in a thread of its own, because its caller may be inside a runtime.
pub(crate) fn beside<T: Send>(asked: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let ask = || runtime(0)?.block_on(asked);
    std::thread::scope(|scope| scope.spawn(ask).join()).map_err(|_| "the server does not answer")?
}
