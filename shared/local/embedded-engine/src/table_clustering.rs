//! The layout of the engine's items in SQLite.
//!
//! The engine's rows have SQLite row ids, with a separate index by key. With this layout, each key
//! is stored three times (in the row, in the index and in the item's JSON), a replaced row moves to
//! the end of the table, and a write touches three pages.
//!
//! Therefore, right after the engine has created a table, its SQLite tables are replaced by tables
//! that are clustered by their primary keys (`WITHOUT ROWID`). The engine's statements stay
//! unchanged, a key is stored twice, and a write touches one page. Data that is read in key order
//! is also stored in this order.
//!
//! In a file, items are stored without their keys ([`keyless_storage`]), so that each key is stored
//! only once. In memory, items are stored whole, because SQLite compiles each statement on a view
//! together with the view's definition, which takes as long as executing the statement.

use rusqlite::{Connection, TransactionBehavior};

use crate::{EngineError, keyless_storage};

/// Page size of a new file, in bytes. In a clustered table, a row of up to a quarter of a page is
/// stored in one piece, and the remaining part of a longer row takes up whole pages. With SQLite's
/// default of 4 KB, run documents and the indexer's copies would be longer than a quarter of a
/// page.
const PAGE_BYTES: u32 = 8_192;

/// Selects the SQLite tables that are not clustered, with their names and `CREATE` statements. Each
/// table of the engine has an SQLite table for its items, and one for each of its indexes.
const UNCLUSTERED_TABLES: &str = "
    SELECT made.name, made.sql FROM sqlite_master made JOIN _tables known
        ON made.name = known.table_name OR substr(made.name, 1, length(known.table_name) + 2) = known.table_name || '::'
    WHERE made.type = 'table' AND made.sql NOT LIKE '%WITHOUT ROWID'";

/// Sets the page size of an empty file. Has no effect on a file that already has content.
pub(crate) fn set_page_size(connection: &Connection) -> Result<(), EngineError> {
    // Setting the journal mode writes to the file, which fixes the page size.
    Ok(connection.execute_batch(&format!("PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = WAL;"))?)
}

/// Clusters the tables that are not clustered yet, including their items. On disk, also removes the
/// keys from the items' JSON where possible.
pub(crate) fn cluster_tables(connection: &mut Connection, on_disk: bool) -> Result<(), EngineError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: Vec<(String, String)> = {
        let mut tables = transaction.prepare(UNCLUSTERED_TABLES)?;
        let rows = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<_, _>>()?
    };
    for (name, statement) in tables {
        if on_disk && keyless_storage::replace(&transaction, &name)? {
            continue;
        }
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        // The statement does not have the engine's usual form, so the table is left unchanged.
        let Some(columns) = statement.strip_prefix(&format!("CREATE TABLE {quoted}")) else { continue };
        let indexes: Vec<String> = {
            let mut indexes = transaction
                .prepare("SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL")?;
            let rows = indexes.query_map([&name], |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        transaction.execute_batch(&format!(
            "CREATE TABLE \"_clustered\"{columns} WITHOUT ROWID;
             INSERT INTO \"_clustered\" SELECT * FROM {quoted};
             DROP TABLE {quoted};
             ALTER TABLE \"_clustered\" RENAME TO {quoted};
             {};",
            indexes.join(";")
        ))?;
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Engine;

    fn unclustered(engine: &Engine) -> Vec<String> {
        let connection = engine.side().connection();
        let mut tables = connection.prepare(super::UNCLUSTERED_TABLES).unwrap();
        let names = tables.query_map([], |row| row.get(0)).unwrap();
        names.collect::<Result<_, _>>().unwrap()
    }

    fn table_with_indexes() -> Value {
        let key = |range: &str| json!([{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": range, "KeyType": "RANGE" }]);
        let index = |name: &str| json!({ "IndexName": name, "KeySchema": key(name), "Projection": { "ProjectionType": "KEYS_ONLY" } });
        let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
        json!({
            "TableName": "a.table-1",
            "AttributeDefinitions": (["PK", "SK", "local", "global"].map(attribute)),
            "KeySchema": key("SK"),
            "LocalSecondaryIndexes": [index("local")],
            "GlobalSecondaryIndexes": [index("global")],
            "BillingMode": "PAY_PER_REQUEST",
        })
    }

    #[tokio::test]
    async fn tables_are_clustered_and_hold_what_is_written() {
        let directory = tempfile::tempdir().unwrap();
        for engine in [Engine::memory().unwrap(), Engine::open(directory.path()).unwrap()] {
            engine.call("CreateTable", table_with_indexes()).await.unwrap();
            assert_eq!(unclustered(&engine), Vec::<String>::new());
            for (number, long) in ["", "x".repeat(100_000).as_str()].into_iter().enumerate() {
                for local in ["first", "second"] {
                    let item = json!({
                        "PK": { "S": "a" }, "SK": { "S": number.to_string() }, "local": { "S": local }, "global": { "S": "g" },
                        "long": { "S": format!("{long}.") },
                    });
                    engine.call("PutItem", json!({ "TableName": "a.table-1", "Item": item })).await.unwrap();
                }
            }
            for (index, value, found) in [("local", "second", 2), ("local", "first", 0), ("global", "g", 2)] {
                let query = json!({
                    "TableName": "a.table-1", "IndexName": index,
                    "KeyConditionExpression": "PK = :pk AND #range = :value", "ExpressionAttributeNames": { "#range": index },
                    "ExpressionAttributeValues": { ":pk": { "S": "a" }, ":value": { "S": value } },
                });
                assert_eq!(engine.call("Query", query).await.unwrap()["Count"], found, "{index} {value}");
            }
            assert_eq!(engine.items("a.table-1").await.unwrap().len(), 2);
        }
    }

    /// Unclustered tables are created by another process, or by an earlier version that did not
    /// cluster tables.
    #[tokio::test]
    async fn a_table_that_holds_something_keeps_it() {
        for on_disk in [false, true] {
            let engine = Engine::memory().unwrap();
            engine.call("CreateTable", table_with_indexes()).await.unwrap();
            engine.side().connection().execute_batch(
                r#"DROP TABLE "a.table-1";
                CREATE TABLE "a.table-1" (pk TEXT NOT NULL, sk TEXT NOT NULL DEFAULT '', item_json TEXT NOT NULL,
                    item_size INTEGER NOT NULL, cached_at REAL, hash_prefix TEXT NOT NULL DEFAULT '', PRIMARY KEY (pk, sk));"#,
            ).unwrap();
            let item = json!({ "PK": { "S": "a" }, "SK": { "S": "b" } });
            engine.call("PutItem", json!({ "TableName": "a.table-1", "Item": item })).await.unwrap();
            assert_eq!(unclustered(&engine), ["a.table-1"]);
            super::cluster_tables(&mut engine.side().connection(), on_disk).unwrap();
            assert_eq!(unclustered(&engine), Vec::<String>::new());
            assert_eq!(engine.items("a.table-1").await.unwrap(), [item]);
        }
    }
}
