use leasehold_core::{Attempt, Claim, Error, ErrorKind, GrantRef, Result};
use leasehold_mysql::{Step, Value, named};

use crate::MysqlRwBackend;

impl MysqlRwBackend {
    /// The writer's number, the reader's row, and only then the writer's release: wherever it breaks off, one of the two bars
    /// every other writer.
    pub(crate) async fn writer_to_reader(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        let gone = Ok(Attempt::Busy { retry_in: None });
        let Some(written) = writer.epoch else { return gone };
        let (name, owner) = (("name", self.name(&claim.key)), Value::from(writer.owner.as_bytes()));
        let step = |statement| Step::new("downgrade", statement);
        let params = named([name.clone(), ("writer", owner.clone()), ("written", Value::UInt(written))]);
        let drawn = self.sessions.run(step(&self.statements.downgrade_draw).repeatable(), params).await?.id;
        if drawn == 0 {
            return gone;
        }
        let Attempt::Granted { epoch } = self.admit("downgrade", claim, owner.clone(), drawn).await? else {
            return gone;
        };
        // The reader is in; whatever goes wrong now, it has to be taken back.
        let in_doubt = |failed: Error| Error::new(ErrorKind::Indeterminate, "downgrade").detail(failed.to_string());
        let params = named([name, ("owner", owner)]);
        let let_go = self.sessions.run(step(&self.statements.let_go_writer), params).await.map_err(in_doubt)?;
        if let_go.affected == 0 {
            // The writer was evicted meanwhile, or its lease ran out.
            self.let_go_reader(&claim.grant(epoch)).await.map_err(in_doubt)?;
            return gone;
        }
        Ok(Attempt::Granted { epoch })
    }
}
