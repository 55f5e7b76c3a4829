use std::time::Duration;

use sqlx::pool::{Pool, PoolConnection};
use sqlx::{Database, SqlSafeStr as _};
use sqlx_core::transaction::TransactionManager as _;
use tokio::time::timeout;

use super::dialect::Dialect;

/// How long a rollback may take.
const UNDO: Duration = Duration::from_secs(10);
/// Is gone when the transaction was ended by anybody but us: by a handler's `COMMIT` or `ROLLBACK`, by a statement that commits, or by a
/// server that undoes everything after a deadlock.
const MARK: &str = "SAVEPOINT mqguard";

type Manager<DB> = <DB as Database>::TransactionManager;

/// A session in a transaction. Unless that ends as it should, the session is closed: the next run does not get one in an unknown state.
pub(super) struct Session<DB: Database>(Option<PoolConnection<DB>>);

impl<DB: Database> Session<DB> {
    pub(super) async fn begin<D: Dialect<Database = DB, Connection = DB::Connection>>(pool: &Pool<DB>) -> sqlx::Result<Self> {
        let mut session = Self(Some(pool.acquire().await?));
        Manager::<DB>::begin(session.connection()?, Some(D::BEGIN.into_sql_str())).await?;
        D::script(session.connection()?, MARK).await?;
        Ok(session)
    }

    pub(super) fn connection(&mut self) -> sqlx::Result<&mut DB::Connection> {
        self.0.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        Manager::<DB>::commit(self.connection()?).await?;
        self.give_back();
        Ok(())
    }

    /// If this is not answered, the server undoes what it was at when the session is closed.
    pub(super) async fn undo(mut self) {
        let Ok(connection) = self.connection() else { return };
        match timeout(UNDO, Manager::<DB>::rollback(connection)).await {
            Ok(Ok(())) => self.give_back(),
            Ok(Err(error)) => tracing::debug!("the rollback failed, the session is closed: {error}"),
            Err(_) => tracing::debug!("the rollback was not answered, the session is closed"),
        }
    }

    /// A transaction of a handler's own in ours may still be open.
    fn give_back(&mut self) {
        if self.0.as_deref().is_some_and(|connection| Manager::<DB>::get_transaction_depth(connection) == 0) {
            self.0 = None;
        }
    }
}

impl<DB: Database> Drop for Session<DB> {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.close_on_drop();
        }
    }
}
