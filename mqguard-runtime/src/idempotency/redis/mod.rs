//! Records on a Redis server.

mod answer;
mod durability;
mod entry;
mod error;
mod eviction;
mod link;
mod script;
mod target;
mod warnings;

use std::fmt;

use async_trait::async_trait;

use self::answer::{Answer, unexpected};
use self::entry::Entry;
use self::link::Link;
use self::script::Call;
use self::target::Target;
use super::batch::Batcher;
use super::contract::{Claim, ClaimRequest, Hold, Settled, Step, Store, StoreError};
use super::invalid_url::InvalidUrl;

/// Keeps the records on a Redis server (5.0 or later, or one that speaks its protocol).
///
/// A record is the string `mq:dedup:` + md5 of the identity, which always has an expiry. What concurrent callers ask is one atomic
/// script, at most some hundred questions of it, over one connection. The server must not evict records (`maxmemory-policy
/// noeviction`), and should keep them over a restart and a failover: [`warnings`](Store::warnings) tells when it may not. It must be one server, with or without replicas, not a Redis
/// Cluster.
///
/// A record tells owner, state, for how many milliseconds it is kept and leased since it was written, turn, crashes, the body's fingerprint (and the letter
/// that is owed, with its error), and of which consumer, key and message id it is:
///
/// ```text
/// > GET mq:dedup:0cc175b9c0f1b6a831c399e269772661
/// 8f3e... processing kept=86400000 lease=60000 turn=0.1 crashes=0 body=1204... ["order.process","42","0193f9a2-..."]
/// ```
pub struct RedisStore {
    target: Target,
    batcher: Batcher<Link>,
}

impl RedisStore {
    /// A store on the server that a URL names: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS (with the
    /// feature `tls`), `redis+unix:///path/to/socket[?db=..&user=..&pass=..]`. Connects when it is first used.
    ///
    /// # Errors
    /// [`InvalidUrl`].
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        let target = Target::parse(url)?;
        let batcher = Batcher::new({
            let target = target.clone();
            move || Link::new(target.clone())
        });
        Ok(Self { target, batcher })
    }
}

/// Shows the address, never the password.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("server", &format_args!("{}", self.target)).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        match self.batcher.ask(Call::Record(Entry::claim(request))).await? {
            Answer::Claim(claim) => Ok(claim),
            other => Err(unexpected(&other)),
        }
    }

    async fn settle(&self, hold: &Hold, step: &Step) -> Result<Settled, StoreError> {
        match self.batcher.ask(Call::Record(Entry::settle(hold, step))).await? {
            Answer::Settled(settled) => Ok(settled),
            other => Err(unexpected(&other)),
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.batcher.ask(Call::ping()).await.map(drop)
    }

    async fn warnings(&self) -> Result<Vec<String>, StoreError> {
        warnings::of(self).await
    }
}
