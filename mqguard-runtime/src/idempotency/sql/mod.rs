//! Records as rows of a database, in one of two tables: `mq_consume_record`, whose unique constraint is the identity, or `mq_msg_log`, the
//! log of the state machine.

mod dialect;
mod exchange;
mod failure;
mod key;
mod life;
mod link;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod row;
mod schema;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod transaction;

pub(crate) use self::failure::passes;
pub use self::life::Stuck;
#[cfg(feature = "mysql")]
pub use self::store::MySqlStore;
#[cfg(feature = "postgres")]
pub use self::store::PostgresStore;
#[cfg(feature = "sqlite")]
pub use self::store::SqliteStore;
pub use self::transaction::Tx;
