//! The tables, by versions. Which one there is, the table `mq_schema` says.

use super::super::contract::StoreError;
use super::dialect::Dialect;
use super::failure;

/// Runs the migrations that are missing. The caller sees to it that it is the only one.
pub(super) async fn run_missing<D: Dialect>(connection: &mut D::Connection) -> sqlx::Result<()> {
    let version = usize::try_from(D::version(connection).await?).unwrap_or_default();
    for (nth, migration) in D::MIGRATIONS.iter().enumerate().skip(version) {
        tracing::info!(database = D::NAME, from = nth, to = nth + 1, "migrating the tables of mqguard");
        D::script(connection, migration).await?;
    }
    Ok(())
}

/// Whether the tables have to be migrated to be those that this code knows. An error when they must not, or cannot.
pub(super) async fn is_old<D: Dialect>(
    connection: &mut D::Connection,
    may_migrate: bool,
    place: &str,
) -> Result<bool, StoreError> {
    let known = D::MIGRATIONS.len();
    let found = D::version(connection).await.map_err(|error| failure::of::<D>(&error, place))?;
    let found = usize::try_from(found).unwrap_or_default();
    if found > known {
        return Err(StoreError::Refused(format!(
            "{place}: its tables are of version {found}, made by a newer mqguard than this, which knows version {known}: update mqguard here"
        )));
    }
    if found < known && !may_migrate {
        let what =
            if found == 0 { "mqguard has no tables there".to_owned() } else { format!("its tables are of version {found}") };
        let cure = cure::<D>(found);
        return Err(StoreError::Refused(format!("{place}: {what}, this mqguard needs version {known}: {cure}")));
    }
    Ok(found < known)
}

/// Makes the tables those that this code knows.
pub(super) async fn migrate<D: Dialect>(connection: &mut D::Connection, place: &str) -> Result<(), StoreError> {
    match D::migrate(connection).await.map_err(|error| failure::of::<D>(&error, place)) {
        Err(StoreError::Refused(why)) => {
            Err(StoreError::Refused(format!("{why}; to make the tables of mqguard, {}", cure::<D>(0))))
        }
        migrated => migrated,
    }
}

fn cure<D: Dialect>(found: usize) -> String {
    format!(
        "apply the files from `migrations/{}` after {found:04} with a user who may, or let mqguard do it (`auto_migrate`)",
        D::NAME
    )
}
