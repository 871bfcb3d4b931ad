//! Indexes of items by their time to live.
//!
//! The engine's own sweep reads all items of a table. With half a million runs, a sweep would keep
//! one core busy for longer than the interval between sweeps. Therefore each SQLite table with a
//! time to live gets an index of the items that have one, and the sweep reads only expired items.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde_json::{Value, json};

use crate::EngineError;

/// Number of expired items to look up at a time.
const PAGE_SIZE: usize = 100;

/// Selects the engine's tables, with their keys and the attribute of their time to live, if they
/// have one. SQLite's JSON paths cannot express a quote or a backslash, so tables with such an
/// attribute name get no index, and their items are not expired.
const TABLES_WITH_TTL: &str = r#"
    SELECT table_name, key_schema,
        CASE WHEN ttl_enabled AND NOT instr(ttl_attribute, '"') AND NOT instr(ttl_attribute, '\') THEN ttl_attribute END
    FROM _tables"#;

/// A table of the engine, with its keys and its time to live.
struct EngineTable {
    name: String,
    /// Names of the key attributes.
    keys: Vec<String>,
    /// Name of the attribute with the time after which an item has expired, in seconds since 1970.
    attribute: Option<String>,
}

/// A table whose items expire.
pub(crate) struct ExpiringTable {
    table: String,
    keys: Vec<String>,
    attribute: String,
}

/// Where the items of a table are stored in SQLite.
struct ItemsTable {
    /// Name of the SQLite table.
    rows: String,
    /// Column with the item's JSON.
    column: &'static str,
}

/// Creates missing indexes, and drops the indexes of tables without a time to live. Creating an
/// index reads the whole table once.
pub(crate) fn index(connection: &mut Connection) -> Result<(), EngineError> {
    if changes(connection)?.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again, because another process can have made the changes in the meantime.
    for change in changes(&transaction)? {
        transaction.execute_batch(&change)?;
    }
    Ok(transaction.commit()?)
}

/// Returns the engine's tables.
fn known(connection: &Connection) -> Result<Vec<EngineTable>, EngineError> {
    let mut tables = connection.prepare_cached(TABLES_WITH_TTL)?;
    let tables = tables.query_map([], |row| {
        let schema: Value = serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default();
        let keys = schema.as_array().into_iter().flatten().filter_map(|key| key["AttributeName"].as_str());
        Ok(EngineTable { name: row.get(0)?, keys: keys.map(str::to_owned).collect(), attribute: row.get(2)? })
    })?;
    Ok(tables.collect::<Result<_, _>>()?)
}

/// Returns the statements that bring the indexes up to date.
fn changes(connection: &Connection) -> Result<Vec<String>, EngineError> {
    let mut changes = Vec::new();
    for EngineTable { name: table, attribute, .. } in known(connection)? {
        let index = index_of(&table);
        let known = "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?1";
        let there: Option<String> = connection.query_row(known, [&index], |row| row.get(0)).optional()?;
        let wanted = match attribute {
            Some(attribute) => Some(definition(&table, &place(connection, &table)?, &attribute)),
            None => None,
        };
        if there != wanted {
            changes.extend(there.map(|_| format!("DROP INDEX {}", quoted(&index))));
            changes.extend(wanted);
        }
    }
    Ok(changes)
}

/// Returns the statement that creates a table's index.
fn definition(table: &str, place: &ItemsTable, attribute: &str) -> String {
    let ItemsTable { rows, column } = place;
    let (has, at) = terms(column, attribute);
    format!("CREATE INDEX {} ON {}({at}) WHERE {has}", quoted(&index_of(table)), quoted(rows))
}

/// Returns two SQL terms for an index: a cheap check whether an item may have a time to live, and
/// the time itself.
fn terms(column: &str, attribute: &str) -> (String, String) {
    let attribute = json!(attribute).to_string();
    let (needle, path) = (format!("{attribute}:{{\"N\":"), format!("$.{attribute}.N"));
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    // SQLite evaluates the time only for items that pass this check, and most do not.
    let has = format!("instr({column}, {})", text(&needle));
    (has, format!("CAST(json_extract({column}, {}) AS INTEGER)", text(&path)))
}

/// Returns the SQLite table that stores the items of a table. In a file, it contains the items
/// without their keys.
fn place(connection: &Connection, table: &str) -> Result<ItemsTable, EngineError> {
    let rows = format!("_rows::{table}");
    let is_there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    let without_keys = connection.query_row(is_there, [&rows], |_| Ok(())).optional()?.is_some();
    Ok(if without_keys {
        ItemsTable { rows, column: "rest" }
    } else {
        ItemsTable { rows: table.to_owned(), column: "item_json" }
    })
}

/// Returns the tables whose items expire.
pub(crate) fn expiring(connection: &Connection) -> Result<Vec<ExpiringTable>, EngineError> {
    let tables = known(connection)?.into_iter();
    let expiring = tables.filter_map(|EngineTable { name, keys, attribute }| {
        Some(ExpiringTable { table: name, keys, attribute: attribute? })
    });
    Ok(expiring.collect())
}

impl ExpiringTable {
    /// Returns the keys of some items that have expired by the time `now` (in seconds), the oldest
    /// first, and whether there may be more.
    pub(crate) fn expired(&self, connection: &Connection, now: u64) -> Result<(Vec<Value>, bool), EngineError> {
        let place = place(connection, &self.table)?;
        let mut found = connection.prepare(&self.statement(&place))?;
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let limit = i64::try_from(PAGE_SIZE).unwrap_or(i64::MAX);
        let found =
            found.query_map(params![now, limit], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let found: Vec<_> = found.collect::<Result<_, _>>()?;
        let mut keys = Vec::new();
        let mut whole =
            connection.prepare(&format!("SELECT item_json FROM {} WHERE pk = ?1 AND sk = ?2", quoted(&self.table)))?;
        for (partition, sort) in &found {
            let item = whole.query_row([partition, sort], |row| row.get::<_, String>(0)).optional()?;
            let item: Option<Value> = item.and_then(|item| serde_json::from_str(&item).ok());
            keys.extend(item.map(|item| self.keys.iter().map(|key| (key.clone(), item[key].clone())).collect()));
        }
        Ok((keys, found.len() == PAGE_SIZE))
    }

    /// Returns the statement that finds expired items in the index. Its parameters are the time and
    /// the maximum number of items.
    fn statement(&self, place: &ItemsTable) -> String {
        let (has, at) = terms(place.column, &self.attribute);
        format!(
            "SELECT pk, sk FROM {} INDEXED BY {} WHERE {has} AND {at} <= ?1 ORDER BY {at} LIMIT ?2",
            quoted(&place.rows),
            quoted(&index_of(&self.table))
        )
    }

    /// Returns the request that deletes an item, on condition that its expiry has not been
    /// postponed in the meantime.
    pub(crate) fn deletion(&self, key: &Value, now: u64) -> Value {
        json!({
            "TableName": self.table,
            "Key": key,
            "ConditionExpression": "#time <= :now",
            "ExpressionAttributeNames": { "#time": self.attribute },
            "ExpressionAttributeValues": { ":now": { "N": now.to_string() } },
        })
    }
}

fn index_of(table: &str) -> String {
    format!("_expiry::{table}")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Engine;

    /// Creates a table whose items expire by this attribute.
    async fn create(engine: &Engine, attribute: &str) {
        let table = json!({
            "TableName": "table",
            "AttributeDefinitions": (["PK", "SK"].map(|name| json!({ "AttributeName": name, "AttributeType": "S" }))),
            "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": "SK", "KeyType": "RANGE" }],
            "BillingMode": "PAY_PER_REQUEST",
        });
        engine.call("CreateTable", table).await.unwrap();
        let ttl = json!({ "Enabled": true, "AttributeName": attribute });
        let ttl = json!({ "TableName": "table", "TimeToLiveSpecification": ttl });
        engine.call("UpdateTimeToLive", ttl).await.unwrap();
    }

    /// Returns SQLite's query plan for finding the expired items of the only table.
    fn plan(engine: &Engine) -> String {
        let connection = engine.side().connection();
        let expiring = super::expiring(&connection).unwrap().pop().unwrap();
        let statement = expiring.statement(&super::place(&connection, &expiring.table).unwrap());
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let lines = plan.query_map([1, 1], |row| row.get::<_, String>("detail")).unwrap();
        lines.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    #[tokio::test]
    async fn the_sweep_reads_an_index() {
        let directory = tempfile::tempdir().unwrap();
        for engine in [Engine::memory().unwrap(), Engine::open(directory.path()).unwrap()] {
            create(&engine, "it's time").await;
            let plan = plan(&engine);
            assert!(plan.starts_with("SEARCH") && plan.contains("INDEX _expiry::") && !plan.contains(';'), "{plan}");
            assert_eq!(super::changes(&engine.side().connection()).unwrap(), Vec::<String>::new());
            assert_eq!(engine.sweep_ttl().await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn a_file_without_the_index_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path()).unwrap();
        create(&engine, "ttl").await;
        engine.side().connection().execute_batch("DROP INDEX \"_expiry::table\"").unwrap();
        let item = json!({ "PK": { "S": "a" }, "SK": { "S": "b" }, "ttl": { "N": "1" } });
        engine.call("PutItem", json!({ "TableName": "table", "Item": item })).await.unwrap();
        let another = Engine::open(directory.path()).unwrap();
        assert_eq!(super::changes(&another.side().connection()).unwrap(), Vec::<String>::new());
        engine.side().connection().execute_batch("DROP INDEX \"_expiry::table\"").unwrap();
        assert_eq!(engine.sweep_ttl().await.unwrap(), 1);
    }
}
