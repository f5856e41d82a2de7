use leasehold_core::{EngineOptions, Error, ErrorKind, LocalHandoff, Result};
use leasehold_mysql::{Access, Opened, Pool};

use crate::statements::{LOCKS, READERS, readers_of};
use crate::{MysqlRw, MysqlRwBackend};

/// What [`MysqlRw`] needs to know: a URL or a pool, and where it differs from the defaults, the rest.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MysqlRwBuilder {
    access: Access,
    local_handoff: LocalHandoff,
}

impl MysqlRwBuilder {
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

    /// The table of the keys: 1 to 56 letters, digits and underscores; that of the readers has `_readers` behind it.
    /// `leasehold_rw` by default.
    pub fn table(self, table: impl Into<String>) -> Self {
        Self { access: self.access.table(table), ..self }
    }

    /// Whether waiters are woken by a queue in the server, instead of polling; see [`Doorbell`]. Off by default.
    ///
    /// It needs a URL, and takes a connection for each key that is waited for, or held after a wait: as many as
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

    /// Connects, and checks that the tables are there.
    ///
    /// # Errors
    /// As for [`MysqlRw::connect`].
    pub async fn connect(self) -> Result<MysqlRw> {
        let settings = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(MysqlRw::with(self.backend().await?, settings))
    }

    /// The same without an engine around it: for wrappers, and for the conformance suite.
    ///
    /// # Errors
    /// As for [`MysqlRw::connect`].
    pub async fn backend(self) -> Result<MysqlRwBackend> {
        let opened = self.open().await?;
        let readers = readers_of(&opened.table)?;
        let checked = async {
            LOCKS.check(&opened.sessions, &opened.table).await?;
            READERS.check(&opened.sessions, &readers).await
        };
        let checked = checked.await;
        if let Err(refused) = checked {
            opened.sessions.close().await;
            return Err(refused.with_backend(MysqlRwBackend::NAME));
        }
        Ok(MysqlRwBackend::new(opened, &readers))
    }

    /// Creates the tables unless they are there. Needs the right to `CREATE`.
    ///
    /// # Errors
    /// As for [`MysqlRw::connect`].
    pub async fn migrate(self) -> Result<()> {
        let opened = self.open().await?;
        let readers = readers_of(&opened.table)?;
        let migrated = async {
            LOCKS.migrate(&opened.sessions, &opened.table).await?;
            READERS.migrate(&opened.sessions, &readers).await
        };
        let migrated = migrated.await;
        opened.sessions.close().await;
        migrated.map_err(|refused| refused.with_backend(MysqlRwBackend::NAME))
    }

    async fn open(self) -> Result<Opened> {
        let opened = self.access.open("leasehold_rw").await?;
        if opened.doorbell.is_some() {
            // Readers would come one at a time.
            let why = "there is no doorbell here: it wakes one waiter at a time, and readers go together";
            return Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(why));
        }
        Ok(opened)
    }
}

/// For wrappers that collect the same settings for several backends.
impl From<Access> for MysqlRwBuilder {
    fn from(access: Access) -> Self {
        Self { access, ..Self::default() }
    }
}
