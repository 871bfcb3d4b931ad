//! The layout of the engine's items in the file.
//!
//! The engine gives each row an id of SQLite's and keeps an index by key in addition to the rows.
//! So a key is there three times (row, index, the item's JSON), a replaced row moves to the end,
//! and a write touches three pages.
//!
//! Right after the engine has made a table, its SQLite tables are therefore replaced by ones that
//! are clustered by their primary keys (`WITHOUT ROWID`). The engine's statements are the same, a
//! key is there twice, and a write touches one page. Data that is read in the order of keys is also
//! stored in that order.
//!
//! In a file, the items themselves are kept without their keys ([`without_keys`]), so that these
//! are there once. In memory they are whole: each statement about a view is compiled with the
//! view's own, which takes as long as carrying it out.

use rusqlite::{Connection, TransactionBehavior};

use crate::{Error, without_keys};

/// Bytes of a page in a new file. Clustered, a row of up to a quarter of a page is kept in one piece; of a longer one the rest takes
/// whole pages: run documents and the indexer's copies are longer than a quarter of SQLite's usual 4 KB.
const PAGE: u32 = 8_192;

/// The SQLite tables of the engine's tables that are not clustered: name, statement that makes it. A table has one, and one for
/// each of its indexes, named after it.
const UNCLUSTERED: &str = "
    SELECT made.name, made.sql FROM sqlite_master made JOIN _tables known
        ON made.name = known.table_name OR substr(made.name, 1, length(known.table_name) + 2) = known.table_name || '::'
    WHERE made.type = 'table' AND made.sql NOT LIKE '%WITHOUT ROWID'";

/// Prepares an empty file; one that holds something stays as it is.
pub(crate) fn set_page_size(connection: &Connection) -> Result<(), Error> {
    // The mode is written to the file, and fixes the size of its pages.
    Ok(connection.execute_batch(&format!("PRAGMA page_size = {PAGE}; PRAGMA journal_mode = WAL;"))?)
}

/// Clusters the tables that are not clustered yet, with their items; those of a file without their
/// keys.
pub(crate) fn cluster_tables(connection: &mut Connection, on_disk: bool) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: Vec<(String, String)> = {
        let mut tables = transaction.prepare(UNCLUSTERED)?;
        let rows = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<_, _>>()?
    };
    for (name, statement) in tables {
        if on_disk && without_keys::replace(&transaction, &name)? {
            continue;
        }
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        // Not the engine's statement: the table stays as the engine made it.
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
        let mut tables = connection.prepare(super::UNCLUSTERED).unwrap();
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

    /// As another process may have made it, or a version that did not cluster.
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
