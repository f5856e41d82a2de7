use leasehold_core::{EngineOptions, LocalHandoff, Result};
use leasehold_mysql::{Access, Opened, Pool};

use crate::statements::LAYOUT;
use crate::{MysqlUnique, MysqlUniqueBackend};

/// What [`MysqlUnique`] needs to know: a URL or a pool, and where it differs from the defaults, the rest.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MysqlUniqueBuilder {
    access: Access,
    local_handoff: LocalHandoff,
}

impl MysqlUniqueBuilder {
    /// The server, as `mysql://user:password@host/database`; see [`Address`](leasehold_mysql::Address).
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { access: self.access.url(url), ..self }
    }

    /// The server of this pool instead of a URL, with the same options, by connections of our own. It must not belong
    /// to another tokio runtime.
    ///
    /// The pool is asked for one connection, once, and gets it back as it was. It is refused if that connection had
    /// left the address for a local socket, as the driver's default wants: say `prefer_socket(false)` in its options.
    pub fn pool(self, pool: Pool) -> Self {
        Self { access: self.access.pool(pool), ..self }
    }

    /// What keeps this program's keys apart from another's in the same table: 1 to 64 bytes. `leasehold` by default.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { access: self.access.namespace(namespace), ..self }
    }

    /// The table: 1 to 64 letters, digits and underscores. `leasehold_locks` by default.
    pub fn table(self, table: impl Into<String>) -> Self {
        Self { access: self.access.table(table), ..self }
    }

    /// Whether waiters are woken by a queue in the server, instead of polling; see [`Doorbell`]. Off by default.
    ///
    /// It takes a connection for each key that is waited for, or held after a wait: as many as
    /// `pool_max` says at most, beside the pool's own.
    ///
    /// [`Doorbell`]: leasehold_mysql::Doorbell
    pub fn doorbell(self, wanted: bool) -> Self {
        Self { access: self.access.doorbell(wanted), ..self }
    }

    /// How far a grant may pass from guard to guard inside this process without the server.
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Connects, and checks that the table is there.
    ///
    /// # Errors
    /// As for [`MysqlUnique::connect`].
    pub async fn connect(self) -> Result<MysqlUnique> {
        let settings = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(MysqlUnique::with(self.backend().await?, settings))
    }

    /// The same without an engine around it: for wrappers, and for the conformance suite.
    ///
    /// # Errors
    /// As for [`MysqlUnique::connect`].
    pub async fn backend(self) -> Result<MysqlUniqueBackend> {
        let opened = self.open().await?;
        let checked = LAYOUT.check(&opened.sessions, &opened.table).await;
        if let Err(refused) = checked {
            opened.sessions.close().await;
            return Err(refused.with_backend(MysqlUniqueBackend::NAME));
        }
        Ok(MysqlUniqueBackend::new(opened))
    }

    /// Creates the table unless it is there. Needs the right to `CREATE`.
    ///
    /// # Errors
    /// As for [`MysqlUnique::connect`].
    pub async fn migrate(self) -> Result<()> {
        let opened = self.open().await?;
        let migrated = LAYOUT.migrate(&opened.sessions, &opened.table).await;
        opened.sessions.close().await;
        migrated.map_err(|refused| refused.with_backend(MysqlUniqueBackend::NAME))
    }

    async fn open(self) -> Result<Opened> {
        self.access.open("leasehold_locks").await
    }
}

/// For wrappers that collect the same settings for several backends.
impl From<Access> for MysqlUniqueBuilder {
    fn from(access: Access) -> Self {
        Self { access, ..Self::default() }
    }
}
