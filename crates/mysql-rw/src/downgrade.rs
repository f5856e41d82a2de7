use leasehold_core::{Attempt, Claim, Error, ErrorKind, GrantRef, Result};
use leasehold_mysql::{Step, Value, named};

use crate::readers::admit;
use crate::release::release_reader;
use crate::store::Store;

/// Makes a reader of a writer. Draws an epoch, adds the row of the reader, and only then releases the writer: wherever
/// that breaks off, one of the two keeps all other writers out.
pub(crate) async fn downgrade(store: &Store, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
    let lost = Ok(Attempt::Busy { retry_in: None });
    let Some(written) = writer.epoch else { return lost };
    let (name, owner) = (("name", store.name(&claim.key)), Value::from(writer.owner.as_bytes()));
    let step = |statement| Step::new("downgrade", statement);
    let params = named([name.clone(), ("writer", owner.clone()), ("written", Value::UInt(written))]);
    let drawn = store.sessions.run(step(&store.statements.downgrade).repeatable(), params).await?.id;
    if drawn == 0 {
        return lost;
    }
    let Attempt::Granted { epoch } = admit(store, "downgrade", claim, owner.clone(), drawn).await? else {
        return lost;
    };
    // The reader holds now, so every failure from here on is one with an unknown outcome: the engine releases the reader.
    let in_doubt = |failed: Error| Error::new(ErrorKind::Indeterminate, "downgrade").detail(failed.to_string());
    let params = named([name, ("owner", owner)]);
    let released = store.sessions.run(step(&store.statements.release_writer), params).await.map_err(in_doubt)?;
    if released.affected == 0 {
        // The writer was released by force meanwhile, or its lease ran out.
        release_reader(store, &claim.grant(epoch)).await.map_err(in_doubt)?;
        return lost;
    }
    Ok(Attempt::Granted { epoch })
}
