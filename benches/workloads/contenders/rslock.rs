use std::time::Duration;

use rslock::{LockGuard, LockManager};

use crate::load::{Contender, Result};

/// `rslock` with a lease of 30 s. It waits by trying again: three times, then three times more, and so on.
pub(crate) struct Rslock(LockManager);

impl Rslock {
    pub(crate) async fn connect(urls: &[String], retry_millis: u64) -> Result<Self> {
        let mut manager = LockManager::new(urls.to_vec());
        manager.set_retry(3, Duration::from_millis(retry_millis));
        // It connects at the first use, which is not to be measured.
        manager.acquire("bench/warm", Duration::from_secs(30)).await?.release().await;
        Ok(Self(manager))
    }
}

impl Contender for Rslock {
    type Key = String;
    type Held = LockGuard;

    fn key(&self, name: &str) -> Result<String> {
        Ok(format!("rslock/{name}"))
    }

    async fn acquire(&self, key: &String) -> Result<LockGuard> {
        Ok(self.0.acquire(key.as_str(), Duration::from_secs(30)).await?)
    }

    async fn release(&self, held: LockGuard) -> Result<()> {
        held.release().await;
        Ok(())
    }
}
