//! A database of a server that is one test's alone.

use std::time::SystemTime;

use mqguard::sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, raw_sql};

/// It is dropped with this.
pub(crate) struct Database {
    /// Where databases are made.
    server: String,
    name: String,
}

impl Database {
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn mariadb() -> Self {
        Self::create("MQGUARD_TEST_MARIADB")
    }

    pub(crate) fn postgres() -> Self {
        Self::create("MQGUARD_TEST_POSTGRES")
    }

    fn create(variable: &str) -> Self {
        let server = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is set: `cargo xtask test` does so"));
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970").as_nanos();
        let database = Self { server, name: format!("mqguard_payments_{now}") };
        database.run(&format!("CREATE DATABASE {}", database.name));
        database
    }

    pub(crate) fn url(&self) -> String {
        let (server, _) = self.server.rsplit_once('/').expect("a URL with a database");
        format!("{server}/{}", self.name)
    }

    fn run(&self, sql: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            if self.server.starts_with("postgres") {
                execute::<PgConnection>(&self.server, sql).await;
            } else {
                execute::<MySqlConnection>(&self.server, sql).await;
            }
        });
    }
}

async fn execute<C: Connection>(url: &str, sql: &str)
where
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    let mut connection = C::connect(url).await.expect("the server lets us in");
    raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("it can be done");
}

impl Drop for Database {
    fn drop(&mut self) {
        // A killed worker's sessions may still be there.
        let force = if self.server.starts_with("postgres") { " WITH (FORCE)" } else { "" };
        self.run(&format!("DROP DATABASE {}{force}", self.name));
    }
}
