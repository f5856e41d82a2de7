use leasehold_core::{Attempt, Claim, Error, ErrorKind, GrantRef, Result};
use leasehold_mysql::{Step, Value, named};

use crate::MysqlRwBackend;

impl MysqlRwBackend {
    /// The writer's number, the reader's row, and only then the writer's release: wherever it breaks off, one of the two bars
    /// every other writer.
    pub(crate) async fn writer_to_reader(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let gone = Ok(Attempt::Busy { retry_in: None });
        let Some(written) = writer.tenure else { return gone };
        let (name, owner) = (("name", self.name(&claim.key)), Value::from(writer.owner.as_bytes()));
        let run = |statement, params| self.sessions.run(Step::new("downgrade", statement).repeatable(), params);
        let params = named([name.clone(), ("writer", owner.clone()), ("written", Value::UInt(written))]);
        let drawn = run(&self.statements.downgrade_draw, params).await?.id;
        if drawn == 0 {
            return gone;
        }
        let tenure = run(&self.statements.admit, self.admission(claim, owner.clone(), drawn)).await?.id;
        if tenure == 0 {
            return gone;
        }
        // The reader is in; whatever goes wrong now, it has to be taken back.
        let in_doubt = |failed: Error| Error::new(ErrorKind::Indeterminate, "downgrade").detail(failed.to_string());
        let params = named([name, ("owner", owner)]);
        let let_go = self.sessions.run(Step::new("downgrade", &self.statements.let_go_writer), params);
        if let_go.await.map_err(in_doubt)?.affected == 0 {
            // The writer was evicted meanwhile, or its lease ran out.
            self.let_go_reader(&claim.grant(Some(tenure))).await.map_err(in_doubt)?;
            return gone;
        }
        Ok(Attempt::Granted { tenure: Some(tenure) })
    }
}
