//! What the author of a backend implements for the suite.

use async_trait::async_trait;

use crate::{Backend, Capabilities, Clock, Result};

/// How the suite reaches a store. The author of a backend implements this.
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// The backend under test.
    type Backend: Backend;

    /// The capabilities of the backend. No I/O: this is called while cases are listed.
    fn capabilities(&self) -> Capabilities;

    /// Checks that the store can be reached, once before the cases. By default it can.
    ///
    /// # Errors
    /// Why the store cannot be reached, for the report. Every case is then ignored, and the run is a success, unless the environment
    /// variable `LEASEHOLD_CONFORMANCE_REQUIRED` is `1`: set it wherever the store has to be there. `Debug` of an
    /// [`Error`](crate::Error) says the cause, such as a refused connection, which `Display` leaves to its source.
    async fn available(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Connects a new client to the store. It is independent of every other client and sees only this namespace.
    async fn connect(&self, namespace: &str) -> Result<Self::Backend>;

    /// Connects a new client that uses the given clock, which may be an hour off. By default the clock is ignored.
    ///
    /// Only needed by a backend that reads a clock in the client. The end of a lease must not depend on that clock. The suite sees
    /// whether it does only with this method, and does not see `SystemTime::now` in the backend.
    async fn connect_at(&self, namespace: &str, clock: &Clock) -> Result<Self::Backend> {
        let _ = clock;
        self.connect(namespace).await
    }

    /// Whether a signal means that it is its waiter's turn, as with a line of locks in the store. By default it means that the key may
    /// have been freed, and every waiter hears it: then the suite's model listens, too.
    fn signals_in_turn(&self) -> bool {
        false
    }

    /// Whether each step takes effect at one moment between its request and its answer (Herlihy and Wing, "Linearizability"). By
    /// default it does. It does not where a step is carried out by several servers, or by several statements without a transaction:
    /// then a forced release, a listing, a downgrade, or a step that is sent twice may see, or be, one half of a step. The model asks
    /// those of such a store beside no other step, but a downgrade beside claims.
    fn steps_are_atomic(&self) -> bool {
        true
    }

    /// Environment variables with which a helper process builds a fixture for the same store.
    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}
