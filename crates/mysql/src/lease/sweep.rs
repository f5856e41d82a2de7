use std::time::Duration;

use leasehold_core::{BoxFuture, Result};
use mysql_async::{Params, Value};

use super::scan::RangeScan;
use crate::server::sessions::Sessions;
use crate::statement::batch::batch;
use crate::statement::params::named;
use crate::statement::reply::Row;
use crate::statement::step::Step;

/// The most rows that one statement deletes: all of them are locked until it ends.
const BATCH: usize = 64;

/// The statements that delete the old rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'s> {
    /// Answers where the next chunk ends; see [`RangeScan::chunk`].
    pub chunk_end: &'s str,
    /// Selects the columns of the primary key of the old rows in a chunk. Its parameters are those of
    /// [`Chunk::names`](super::scan::Chunk::names), and `:age`.
    pub find: &'s str,
    /// Deletes the rows of a [`batch`] that are still old. Its last parameter is the age.
    pub delete: &'s str,
}

impl<'s> Sweep<'s> {
    /// The youngest row that is deleted. A claim reads the server's clock when it begins, and may then wait for the rows of
    /// others: what it writes where a younger row was deleted meanwhile could be older than that row.
    pub const LEAST_AGE: Duration = Duration::from_secs(5);

    /// Deletes the rows in the range of `scan` that are older than `age`, and answers how many that were. The unit of
    /// `age` is the one that the statements count in.
    ///
    /// # Errors
    /// The errors of [`Sessions::run`]. Some rows may have been deleted by then.
    ///
    /// # Cancel safety
    /// Dropping the future leaves some of the rows.
    pub fn run(self, sessions: &'s Sessions, mut scan: RangeScan, age: Value) -> BoxFuture<'s, Result<u64>> {
        Box::pin(async move {
            let mut deleted = 0;
            loop {
                let chunk = scan.chunk(sessions, "collect", &[self.chunk_end]).await?;
                let params = named(chunk.names().into_iter().chain([("age", age.clone())]));
                let found = sessions.run(Step::new("collect", self.find).repeatable(), params).await?.rows;
                let keys: Vec<_> = found.into_iter().map(Row::into_values).collect();
                for keys in keys.chunks(BATCH) {
                    let (delete, mut params) = batch(self.delete, keys, &[]);
                    params.push(age.clone());
                    let step = Step::new("collect", &delete).repeatable();
                    deleted += sessions.run(step, Params::Positional(params)).await?.affected;
                }
                let Some(last) = chunk.last else { return Ok(deleted) };
                scan = scan.after(last);
            }
        })
    }
}
