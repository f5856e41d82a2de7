use std::fmt::Write;
use std::sync::Arc;

use leasehold_core::Result;
use sha2::{Digest, Sha256};

use crate::failure::refuse;

/// The schema of the database that has the tables and functions of one store; `leasehold` by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema(Arc<str>);

/// The version of the schema that this program needs, as `version()` in `tables.sql` says it.
pub(crate) const VERSION: i32 = 1;

impl Schema {
    /// Checks the name of a schema, which is `[a-z0-9_]{1,48}`.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if plain && (1..=48).contains(&name.len()) {
            return Ok(Self(format!("\"{name}\"").into()));
        }
        Err(refuse(format!("{name:?} is no name for a schema here: it takes 1 to 48 of a-z, 0-9 and _")))
    }

    /// A statement about this schema. The name of a schema cannot be a parameter.
    pub(crate) fn statement(&self, template: &str) -> Arc<str> {
        template.replace("{schema}", &self.0).into()
    }

    /// What creates the tables of this schema unless they are there, and its functions.
    pub(crate) fn script(&self) -> String {
        let parts = [
            include_str!("sql/tables.sql"),
            include_str!("sql/claim.sql"),
            include_str!("sql/renew.sql"),
            include_str!("sql/release.sql"),
            include_str!("sql/take_over.sql"),
            include_str!("sql/downgrade.sql"),
            include_str!("sql/force_release.sql"),
        ];
        // Of two that migrate at a time, one waits.
        let lock = "BEGIN;\nSELECT pg_advisory_xact_lock(hashtext('leasehold migrate'));\n";
        format!("{lock}{}\nCOMMIT;\n", self.statement(&parts.join("\n")))
    }

    /// The channel of the notifications about the key with this name.
    pub(crate) fn channel(&self, name: &[u8]) -> String {
        let digest = Sha256::new().chain_update(format!("{}:", self.0)).chain_update(name).finalize();
        digest[..20].iter().fold("leasehold_".to_owned(), |mut channel, byte| {
            let _ = write!(channel, "{byte:02x}");
            channel
        })
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self("\"leasehold\"".into())
    }
}
