use leasehold_core::{BoxFuture, Result};
use mysql_async::Value;

use crate::server::sessions::Sessions;
use crate::statement::params::named;
use crate::statement::reply::Columns;
use crate::statement::step::Step;

/// A scan of the rows in a range of names, chunk by chunk, so that a statement reads a bounded number of rows, however
/// few of them it selects.
#[derive(Clone, Debug)]
pub struct RangeScan {
    from: Vec<u8>,
    to: Vec<u8>,
    after: Vec<u8>,
}

/// A part of a scanned range: the names after one name, up to another.
#[derive(Clone, Debug)]
pub struct Chunk {
    scan: RangeScan,
    /// The last name of the chunk; `None` if the chunk goes to the end of the range.
    pub last: Option<Vec<u8>>,
}

impl RangeScan {
    /// The most rows that a chunk has in each table.
    pub const CHUNK: u64 = 5_000;

    /// A scan of the names from the first, inclusive, to the second, exclusive, as far as they come after `after`.
    pub fn new((from, to): (Vec<u8>, Vec<u8>), after: Vec<u8>) -> Self {
        Self { from, to, after }
    }

    /// The scan, continued after this name.
    #[must_use]
    pub fn after(self, after: Vec<u8>) -> Self {
        Self { after, ..self }
    }

    /// The next chunk. `ends` has a statement for each table that answers the last name of the next [`CHUNK`] rows, or
    /// no row if fewer are left. The chunk ends at the smallest of these names.
    ///
    /// [`CHUNK`]: Self::CHUNK
    ///
    /// # Errors
    /// The errors of [`Sessions::run`].
    pub fn chunk<'a>(
        &'a self,
        sessions: &'a Sessions,
        operation: &'static str,
        ends: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Chunk>> {
        Box::pin(async move {
            let mut names = Vec::new();
            for statement in ends {
                let params = named([bytes("from", &self.from), bytes("to", &self.to), bytes("after", &self.after)]);
                let found = sessions.run(Step::new(operation, statement).repeatable(), params).await?;
                names.extend(found.rows.first().map(|row| Columns::of(row, operation).get::<Vec<u8>>()).transpose()?);
            }
            Ok(Chunk { scan: self.clone(), last: names.into_iter().min() })
        })
    }
}

impl Chunk {
    /// The parameters `:from`, `:to`, `:after` and `:upto` of a statement about this chunk.
    pub fn names(&self) -> [(&'static str, Value); 4] {
        let RangeScan { from, to, after } = &self.scan;
        [bytes("from", from), bytes("to", to), bytes("after", after), bytes("upto", self.last.as_ref().unwrap_or(to))]
    }
}

fn bytes(name: &'static str, bytes: &[u8]) -> (&'static str, Value) {
    (name, Value::Bytes(bytes.to_vec()))
}
