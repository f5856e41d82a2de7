use leasehold_core::Result;
use mysql_async::{Params, Row, Value};

use crate::{Columns, Sessions, Step, Target, each, named};

/// How many rows one statement deletes at most: the others of them are locked meanwhile.
const SWEPT_TOGETHER: usize = 64;

/// Goes through the rows of a range of names in stretches, so that a statement reads a bounded number of them, however
/// few it is to find.
#[derive(Clone, Debug)]
pub struct Walk {
    from: Vec<u8>,
    to: Vec<u8>,
    after: Vec<u8>,
}

/// How rows that nobody needs any more are deleted.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'s> {
    /// Says how far a stretch reaches.
    pub reach: &'s str,
    /// Finds the key columns of those of a stretch, with the parameter `:age`.
    pub find: &'s str,
    /// Deletes such rows if they still are: see [`each`]. Its last parameter is the age.
    pub delete: &'s str,
}

/// The next of it: the names of the range after one name, up to another.
#[derive(Clone, Debug)]
pub struct Stretch {
    walk: Walk,
    /// Its last name; `None` if it goes to the end of the range.
    pub last: Option<Vec<u8>>,
}

impl Walk {
    /// The rows that a stretch has at most, in each table.
    pub const STRETCH: u64 = 5_000;

    /// From the first of these names, inclusive, to the second, exclusive; and only what comes after the third.
    pub fn new((from, to): (Vec<u8>, Vec<u8>), after: Vec<u8>) -> Self {
        Self { from, to, after }
    }

    /// The same from after this name on.
    #[must_use]
    pub fn after(self, after: Vec<u8>) -> Self {
        Self { after, ..self }
    }

    /// The next stretch. Each table says with a statement of its own how far it may reach: in the last stretch of a
    /// table all of them end.
    ///
    /// # Errors
    /// As for [`Sessions::run`].
    pub async fn stretch(&self, sessions: &Sessions, operation: &'static str, reach: &[&str]) -> Result<Stretch> {
        let mut last: Option<Vec<u8>> = None;
        for statement in reach {
            let params = named([bytes("from", &self.from), bytes("to", &self.to), bytes("after", &self.after)]);
            let found = sessions.run(Step::new(operation, statement).repeatable(), params).await?;
            if let Some(row) = found.rows.first() {
                let name: Vec<u8> = Columns::of(row, operation).take()?;
                last = Some(last.map_or(name.clone(), |last| last.min(name)));
            }
        }
        Ok(Stretch { walk: self.clone(), last })
    }

    /// Deletes what is as old as this, and says how many rows that were.
    ///
    /// # Errors
    /// As for [`Sessions::run`].
    pub async fn sweep(mut self, sessions: &Sessions, sweep: Sweep<'_>, age: Value) -> Result<u64> {
        let mut deleted = 0;
        loop {
            let stretch = self.stretch(sessions, "collect", &[sweep.reach]).await?;
            let [from, to, after, upto] = stretch.names();
            let params = named([from, to, after, upto, ("age", age.clone())]);
            let found = sessions.run(Step::new("collect", sweep.find).repeatable(), params).await?.rows;
            let identity = |row: Row| row.unwrap_raw().into_iter().flatten().collect();
            let targets: Vec<_> =
                found.into_iter().map(|row| Target { identity: identity(row), micros: None }).collect();
            for batch in targets.chunks(SWEPT_TOGETHER) {
                let (delete, mut params) = each(sweep.delete, batch);
                params.push(age.clone());
                let step = Step::new("collect", &delete).repeatable();
                deleted += sessions.run(step, Params::Positional(params)).await?.affected;
            }
            let Some(last) = stretch.last else { return Ok(deleted) };
            self = self.after(last);
        }
    }
}

impl Stretch {
    /// Its names, as `:from`, `:to`, `:after` and `:upto`, for a statement that takes these.
    pub fn names(&self) -> [(&'static str, Value); 4] {
        let Walk { from, to, after } = &self.walk;
        [bytes("from", from), bytes("to", to), bytes("after", after), bytes("upto", self.last.as_ref().unwrap_or(to))]
    }
}

fn bytes(name: &'static str, bytes: &[u8]) -> (&'static str, Value) {
    (name, Value::Bytes(bytes.to_vec()))
}
