use leasehold_core::{Error, ErrorKind, Result};
use leasehold_mysql::{Address, Namespace, Pool, Sessions, TableName};

use crate::statements::{LAYOUT, Statements};
use crate::{MysqlUnique, MysqlUniqueBackend};

/// What [`MysqlUnique`] needs to know: a URL or a pool, and where it differs from the defaults, namespace and table.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MysqlUniqueBuilder {
    server: Option<Server>,
    namespace: Option<String>,
    table: Option<String>,
}

#[derive(Clone)]
enum Server {
    Url(String),
    Pool(Pool),
}

impl MysqlUniqueBuilder {
    /// The server, as `mysql://user:password@host/database`; see [`Address`].
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { server: Some(Server::Url(url.into())), ..self }
    }

    /// A pool of the caller's instead of a URL. It must not belong to another tokio runtime.
    ///
    /// Each step then costs one more statement, because its sessions may be in any state; renewals share its
    /// connections with everybody else; and [`MysqlUnique::close`] leaves it open.
    pub fn pool(self, pool: Pool) -> Self {
        Self { server: Some(Server::Pool(pool)), ..self }
    }

    /// What keeps this program's keys apart from another's in the same table: 1 to 64 bytes. `leasehold` by default.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// The table: 1 to 64 letters, digits and underscores. `leasehold_locks` by default.
    pub fn table(self, table: impl Into<String>) -> Self {
        Self { table: Some(table.into()), ..self }
    }

    /// Connects, and checks that the table is there.
    ///
    /// # Errors
    /// As for [`MysqlUnique::connect`].
    pub async fn connect(self) -> Result<MysqlUnique> {
        Ok(self.backend().await?.into())
    }

    /// The same without an engine around it: for wrappers, and for the conformance suite.
    ///
    /// # Errors
    /// As for [`MysqlUnique::connect`].
    pub async fn backend(self) -> Result<MysqlUniqueBackend> {
        let (sessions, namespace, table) = self.open()?;
        let checked = LAYOUT.check(&sessions, &table).await;
        if let Err(refused) = checked {
            sessions.close().await;
            return Err(refused.backend(MysqlUniqueBackend::NAME));
        }
        Ok(MysqlUniqueBackend::new(sessions, namespace, Statements::new(&table)))
    }

    /// Creates the table unless it is there. Needs the right to `CREATE`.
    ///
    /// # Errors
    /// As for [`MysqlUnique::connect`].
    pub async fn migrate(self) -> Result<()> {
        let (sessions, _, table) = self.open()?;
        let migrated = LAYOUT.migrate(&sessions, &table).await;
        sessions.close().await;
        migrated.map_err(|refused| refused.backend(MysqlUniqueBackend::NAME))
    }

    fn open(self) -> Result<(Sessions, Namespace, TableName)> {
        let (sessions, address) = match self.server {
            Some(Server::Url(url)) => {
                let address = Address::parse(&url)?;
                (Sessions::new(&address), Some(address))
            }
            Some(Server::Pool(pool)) => (Sessions::from_pool(pool), None),
            None => return Err(Error::new(ErrorKind::InvalidOptions, "connect").detail("neither a URL nor a pool")),
        };
        let (named, tabled) = address.map_or((None, None), |address| (address.namespace, address.table));
        let namespace = self.namespace.map(|given| Namespace::new(&given)).transpose()?.or(named).unwrap_or_default();
        let table = self.table.map(|given| TableName::new(&given)).transpose()?.or(tabled);
        Ok((sessions, namespace, table.map_or_else(|| TableName::new("leasehold_locks"), Ok)?))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Either may hold a password.
        f.write_str(match self {
            Self::Url(_) => "Url",
            Self::Pool(_) => "Pool",
        })
    }
}
