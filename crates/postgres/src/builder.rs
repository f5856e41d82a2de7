use std::fmt;

use leasehold_core::{EngineOptions, Error, ErrorKind, LocalHandoff, Namespace, Result};

use crate::address::Address;
use crate::backend::PostgresBackend;
use crate::failure::refuse;
use crate::locker::Postgres;
use crate::reply::column;
use crate::schema::{Schema, VERSION};
use crate::sessions::{Sessions, Step};
use crate::store::Store;

/// The settings of a [`Postgres`]: a URL, and what differs from it and from the defaults. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Default)]
#[must_use]
pub struct PostgresBuilder {
    url: Option<String>,
    namespace: Option<String>,
    schema: Option<String>,
    group_commit: Option<bool>,
    local_handoff: LocalHandoff,
}

impl PostgresBuilder {
    /// The server, as `postgres://user:password@host:port/database`, with parameters for all other settings; see "Tuning".
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..self }
    }

    /// The namespace, which keeps the keys of two programs in one schema apart: 1 to 64 bytes. `leasehold` by default.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// The schema of the tables: lower-case letters, digits and underscores, at most 48. `leasehold` by default.
    pub fn schema(self, schema: impl Into<String>) -> Self {
        Self { schema: Some(schema.into()), ..self }
    }

    /// Whether acquisitions and releases that come in while another is on its way are sent together, by one statement
    /// and one commit (group commit); default yes.
    pub fn group_commit(self, wanted: bool) -> Self {
        Self { group_commit: Some(wanted), ..self }
    }

    /// How far a lease may pass from guard to guard inside of this process without asking the server.
    pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
        Self { local_handoff, ..self }
    }

    /// Connects, and checks that the schema is there.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) for settings that cannot be used;
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the server cannot be reached, or is a standby;
    /// [`Backend`](crate::ErrorKind::Backend) if the server refuses, or the schema is missing or not of this version.
    pub async fn connect(self) -> Result<Postgres> {
        let options = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(Postgres::with(self.backend().await?, options))
    }

    /// Connects as [`connect`](Self::connect) does, but without an engine around the backend: for wrappers, and for the
    /// conformance suite.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn backend(self) -> Result<PostgresBackend> {
        let named = |error: Error| error.with_backend(PostgresBackend::NAME);
        let sessions = Sessions::new(self.address().map_err(named)?);
        let rows = sessions.run(Step::new("connect", "SELECT {schema}.version()"), &[]).await.map_err(named)?;
        match rows.first().map_or(Ok(0), |row| column::<i32>(row, 0, "connect")).map_err(named)? {
            VERSION => Ok(PostgresBackend { store: Store::new(sessions) }),
            other => {
                let why = format!(
                    "its version is {other}, and this program needs {VERSION}: run a program of that version, or name another \
                     schema (schema=NAME)"
                );
                Err(named(Error::new(ErrorKind::Backend, "connect").detail(why)))
            }
        }
    }

    /// Creates the schema, or what is missing in it, in one transaction. The user needs the right to `CREATE`; see "Server
    /// requirements".
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect); [`Indeterminate`](crate::ErrorKind::Indeterminate) after half a minute without an
    /// answer, perhaps because another session migrates: it may be done by then, and can be repeated.
    pub async fn migrate(self) -> Result<()> {
        let named = |error: Error| error.with_backend(PostgresBackend::NAME);
        let address = self.address().map_err(named)?;
        let script = address.schema.script();
        let sessions = Sessions::new(address);
        let migrated = sessions.script("migrate", &script).await;
        sessions.close();
        migrated.map_err(named)
    }

    /// What [`migrate`](Self::migrate) runs, for who applies such scripts in another way. Needs no URL, and sends nothing.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) for the name of a schema that cannot be used.
    pub fn script(&self) -> Result<String> {
        self.schema.as_deref().map_or_else(|| Ok(Schema::default()), Schema::new).map(|schema| schema.script())
    }

    fn address(&self) -> Result<Address> {
        let mut address = Address::parse(self.url.as_deref().ok_or_else(|| refuse("there is no URL"))?)?;
        if let Some(namespace) = &self.namespace {
            address.namespace = Namespace::new(namespace)?;
        }
        if let Some(schema) = &self.schema {
            address.schema = Schema::new(schema)?;
        }
        address.group_commit = self.group_commit.unwrap_or(address.group_commit);
        Ok(address)
    }
}

impl fmt::Debug for PostgresBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        let Self { namespace, schema, group_commit, .. } = self;
        let mut shown = f.debug_struct("PostgresBuilder");
        shown
            .field("namespace", namespace)
            .field("schema", schema)
            .field("group_commit", group_commit)
            .finish_non_exhaustive()
    }
}

impl Postgres {
    /// Connects to a `postgres://user:password@host:port/database` URL, and checks that the schema is there.
    ///
    /// # Errors
    /// The errors of [`PostgresBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// A builder, for settings other than the defaults.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// Creates the schema that this URL names, or what is missing in it; see [`PostgresBuilder::migrate`].
    ///
    /// # Errors
    /// The errors of [`PostgresBuilder::connect`].
    pub async fn migrate(url: &str) -> Result<()> {
        Self::builder().url(url).migrate().await
    }
}
