use std::fmt;

use leasehold_core::{Error, ErrorKind, Result};
use mysql_async::Pool;

use crate::{Address, Doorbell, Namespace, Sessions, TableName};

/// What the builder of a backend was told: where the server is, and which of its rows are ours.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Access {
    server: Option<Server>,
    namespace: Option<String>,
    table: Option<String>,
    doorbell: bool,
}

#[derive(Clone)]
enum Server {
    Url(String),
    Pool(Pool),
}

/// What came of it.
#[derive(Debug)]
pub struct Opened {
    /// The connections.
    pub sessions: Sessions,
    /// What keeps our keys apart.
    pub namespace: Namespace,
    /// The table of the keys.
    pub table: TableName,
    /// The queue for releases, where it is wanted.
    pub doorbell: Option<Doorbell>,
}

impl Access {
    /// The server, as a `mysql://` URL; see [`Address`].
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { server: Some(Server::Url(url.into())), ..self }
    }

    /// The server of this pool instead, by connections of our own with the same options; see [`Sessions::like`].
    pub fn pool(self, pool: Pool) -> Self {
        Self { server: Some(Server::Pool(pool)), ..self }
    }

    /// Wins over the URL's; see [`Namespace::new`].
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Wins over the URL's; see [`TableName::new`].
    pub fn table(self, table: impl Into<String>) -> Self {
        Self { table: Some(table.into()), ..self }
    }

    /// See [`Doorbell`]. Also what `doorbell=true` in the URL says.
    pub fn doorbell(self, wanted: bool) -> Self {
        Self { doorbell: wanted, ..self }
    }

    /// Checks all of it, for a backend whose table is named `usual` where nobody said another.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`], and those of [`Sessions::like`].
    pub async fn open(self, usual: &str) -> Result<Opened> {
        let refuse = |why| Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(why));
        let address = match &self.server {
            Some(Server::Url(url)) => Some(Address::parse(url)?),
            Some(Server::Pool(_)) => None,
            None => return refuse("neither a URL nor a pool"),
        };
        let given = |choose: fn(&Address) -> Option<&str>| address.as_ref().and_then(choose).map(str::to_owned);
        let namespace = self.namespace.or_else(|| given(|address| address.namespace.as_ref().map(Namespace::as_str)));
        let namespace = namespace.map(|namespace| Namespace::new(&namespace)).transpose()?.unwrap_or_default();
        let table = self.table.or_else(|| given(|address| address.table.as_ref().map(TableName::as_str)));
        let table = TableName::new(table.as_deref().unwrap_or(usual))?;
        let rings = self.doorbell || address.as_ref().is_some_and(|address| address.doorbell);
        let sessions = match (&self.server, &address) {
            (Some(Server::Pool(pool)), _) => Sessions::like(pool).await?,
            (_, Some(address)) => Sessions::new(address),
            _ => return refuse("neither a URL nor a pool"),
        };
        let doorbell = rings.then(|| Doorbell::new(&sessions, &namespace, &table));
        Ok(Opened { sessions, namespace, table, doorbell })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Either may hold a password.
        f.write_str(match self {
            Self::Url(_) => "Url",
            Self::Pool(_) => "Pool",
        })
    }
}
