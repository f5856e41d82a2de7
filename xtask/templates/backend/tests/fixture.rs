struct Server {
    url: String,
}

#[async_trait]
impl Fixture for Server {
    type Backend = NewStoreBackend;

    fn capabilities(&self) -> Capabilities {
        NewStore::claims()
    }

    /// Where there is no store, every case is ignored for this reason, and the run is a success. In CI, set
    /// `LEASEHOLD_CONFORMANCE_REQUIRED=1`: then it is a failure.
    async fn available(&self) -> std::result::Result<(), String> {
        let connected = NewStore::builder().url(&self.url).backend().await;
        // `Debug` shows the cause, too, such as "connection refused".
        connected.map(drop).map_err(|error| format!("{error:?}"))
    }

    async fn connect(&self, namespace: &str) -> Result<NewStoreBackend> {
        NewStore::builder().url(&self.url).namespace(namespace).backend().await
    }
}
