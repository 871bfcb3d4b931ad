//! The schema of an MLflow database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::database::{Database, Dialect};
use crate::Failure;

/// Tables of a database, with their columns. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    tables: Arc<BTreeMap<String, BTreeSet<String>>>,
}

impl Schema {
    /// Reads the tables and columns of a database.
    ///
    /// # Errors
    /// The database is not MLflow's.
    pub(super) async fn read(database: &Database) -> Result<Self, Failure> {
        let sql = match database.dialect() {
            Dialect::Sqlite => {
                "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'"
            }
            Dialect::Postgres => {
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
            }
            Dialect::MySql => {
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = database()"
            }
        };
        let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in database.rows(sql, Vec::new()).await? {
            tables.entry(row.text(0)?).or_default().insert(row.text(1)?);
        }
        if !["alembic_version", "experiments", "runs"].iter().all(|table| tables.contains_key(*table)) {
            return Err("the database has no tables of an MLflow tracking server".into());
        }
        Ok(Self { tables: Arc::new(tables) })
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    pub(super) fn has_table(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    pub(super) fn has_column(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|columns| columns.contains(column))
    }
}
