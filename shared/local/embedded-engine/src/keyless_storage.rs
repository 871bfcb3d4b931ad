//! Storage of items without their keys, in a file.
//!
//! The engine stores an item as JSON that includes its key, and stores the key in separate columns
//! as well. Many items are little more than their keys: a run with its index entries takes 9 KB, of
//! which 3.6 KB are keys in JSON. To save this space, the engine's table is replaced by a view. The
//! view's underlying table stores the JSON without the keys, the view adds the keys to the JSON,
//! and triggers redirect the engine's writes to the underlying table. The engine's statements stay
//! unchanged. In the items that it reads, the keys come first.
//!
//! An item whose JSON contains a NUL character is stored whole, prefixed with a space, because
//! SQLite's functions end a text at this character.

use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;

use crate::EngineError;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Key {
    attribute_name: String,
    key_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ItemsTableDefinition {
    attribute_name: String,
    attribute_type: String,
}

/// Replaces one of the engine's tables by a view, and returns whether it did. Only supports tables
/// that have two string keys with plain names. The caller must have an open transaction.
pub(crate) fn replace(connection: &Connection, table: &str) -> Result<bool, EngineError> {
    let Some((partition, sort)) = text_keys(connection, table)? else { return Ok(false) };
    let (name, rows) = names(table);
    let [put, delete] = ["put", "delete"].map(|what| quoted(&format!("_{what}::{table}")));
    let (paths, key) =
        (format!("'$.{partition}', '$.{sort}'"), |column: &str| format!("json_quote(substr({column}, 3))"));
    let head = format!(r#"'{{"{partition}":{{"S":' || {} || '}},"{sort}":{{"S":' || {} || '}}'"#, key("pk"), key("sk"));
    let shortened = |item: &str| {
        format!(
            r"CASE WHEN instr({item}, '\u0000') THEN ' ' || {item} ELSE coalesce(nullif(json_remove({item}, {paths}), '{{}}'), '') END"
        )
    };
    // Packs the engine's hash of a partition key, by which parallel scans find their segment. It is
    // normally text of hexadecimal digits, and is stored as the bytes that these encode. Any other
    // text is stored unchanged.
    let packed = |hash: &str| format!("coalesce(unhex({hash}), {hash})");
    connection.execute_batch(&format!(
        "CREATE TABLE {rows} (
             pk TEXT NOT NULL, sk TEXT NOT NULL, rest TEXT NOT NULL, item_size INTEGER NOT NULL, cached_at REAL, hash BLOB NOT NULL,
             PRIMARY KEY (pk, sk)
         ) WITHOUT ROWID;
         INSERT INTO {rows} SELECT pk, sk, {moved}, item_size, cached_at, {moved_hash} FROM {name};
         DROP TABLE {name};
         CREATE VIEW {name} AS SELECT pk, sk,
             CASE WHEN rest = '' THEN {head} || '}}' WHEN substr(rest, 1, 1) = ' ' THEN rest ELSE {head} || ',' || substr(rest, 2) END
                 AS item_json,
             item_size, cached_at, CASE typeof(hash) WHEN 'blob' THEN lower(hex(hash)) ELSE hash END AS hash_prefix FROM {rows};
         CREATE TRIGGER {put} INSTEAD OF INSERT ON {name} BEGIN
             INSERT OR REPLACE INTO {rows} VALUES (NEW.pk, NEW.sk, {written}, NEW.item_size, NEW.cached_at, {written_hash});
         END;
         CREATE TRIGGER {delete} INSTEAD OF DELETE ON {name} BEGIN
             DELETE FROM {rows} WHERE pk = OLD.pk AND sk = OLD.sk;
         END;",
        moved = shortened("item_json"),
        moved_hash = packed("hash_prefix"),
        written = shortened("NEW.item_json"),
        written_hash = packed("NEW.hash_prefix"),
    ))?;
    Ok(true)
}

/// Restores a table as the engine expects it, so that the engine can drop it.
pub(crate) fn restore(connection: &mut Connection, table: &str) -> Result<(), EngineError> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let is_view = "SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ?1";
    if transaction.query_row(is_view, [table], |_| Ok(())).optional()?.is_some() {
        let (name, rows) = names(table);
        transaction.execute_batch(&format!(
            "CREATE TABLE \"_restored\" (
                 pk TEXT NOT NULL, sk TEXT NOT NULL DEFAULT '', item_json TEXT NOT NULL, item_size INTEGER NOT NULL, cached_at REAL,
                 hash_prefix TEXT NOT NULL DEFAULT '', PRIMARY KEY (pk, sk)
             );
             INSERT INTO \"_restored\" SELECT pk, sk, item_json, item_size, cached_at, hash_prefix FROM {name};
             DROP VIEW {name};
             DROP TABLE {rows};
             ALTER TABLE \"_restored\" RENAME TO {name};"
        ))?;
    }
    Ok(transaction.commit()?)
}

/// Returns the names of a table's partition key and sort key, if both are strings and the names
/// need no quotes.
fn text_keys(connection: &Connection, table: &str) -> Result<Option<(String, String)>, EngineError> {
    let known = connection
        .query_row(
            "SELECT key_schema, attribute_definitions FROM _tables WHERE table_name = ?1",
            params![table],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
        )
        .optional()?;
    let Some((schema, definitions)) = known else { return Ok(None) };
    let (Ok(schema), Ok(definitions)) =
        (serde_json::from_str::<Vec<Key>>(&schema), serde_json::from_str::<Vec<ItemsTableDefinition>>(&definitions))
    else {
        return Ok(None);
    };
    let is_text = |name: &str| {
        definitions.iter().any(|known| known.attribute_name == name && known.attribute_type == "S")
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    let named = |kind: &str| {
        let key = schema.iter().find(|key| key.key_type == kind)?;
        is_text(&key.attribute_name).then(|| key.attribute_name.clone())
    };
    Ok(named("HASH").zip(named("RANGE")))
}

/// Returns the quoted names of a table's view and of the table with its rows.
fn names(table: &str) -> (String, String) {
    (quoted(table), quoted(&format!("_rows::{table}")))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Engine;

    async fn with_table(engine: Engine) -> Engine {
        let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
        let table = json!({
            "TableName": "a.table-1",
            "AttributeDefinitions": (["PK", "SK"].map(attribute)),
            "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": "SK", "KeyType": "RANGE" }],
            "BillingMode": "PAY_PER_REQUEST",
        });
        engine.call("CreateTable", table).await.unwrap();
        engine
    }

    fn kept(engine: &Engine) -> Vec<String> {
        let connection = engine.side().connection();
        let mut rows = connection.prepare(r#"SELECT rest FROM "_rows::a.table-1" ORDER BY pk, sk"#).unwrap();
        let rows = rows.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[tokio::test]
    async fn items_come_back_whole() {
        let directory = tempfile::tempdir().unwrap();
        for engine in [Engine::memory().unwrap(), Engine::open(directory.path()).unwrap()] {
            let engine = with_table(engine).await;
            let keys = ["a", "\"quoted\\\" \u{1}\n\t/'é😀", "\u{0}", "a\u{0}b", " ", "{}"];
            let mut items = Vec::new();
            for sort in keys {
                for (number, more) in [
                    json!({}),
                    json!({ "text": { "S": "\u{0} and \"more\" \u{1} é😀 \\u0000" }, "PK2": { "S": "PK" } }),
                    json!({ "map": { "M": { "PK": { "S": "inside" }, "list": { "L": [{ "NULL": true }, { "BOOL": false }, { "N": "1E+2" }] } } } }),
                ]
                .into_iter()
                .enumerate()
                {
                    let mut item = json!({ "PK": { "S": format!("{number} {sort}") }, "SK": { "S": sort } });
                    item.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
                    engine.call("PutItem", json!({ "TableName": "a.table-1", "Item": item })).await.unwrap();
                    let mut key = item.clone();
                    key.as_object_mut().unwrap().retain(|name, _| name == "PK" || name == "SK");
                    let got = engine.call("GetItem", json!({ "TableName": "a.table-1", "Key": key })).await.unwrap();
                    // The engine normalizes numbers.
                    let same = |value: &Value| value.to_string().replace("1E+2", "100");
                    assert_eq!(sorted(&got["Item"]).to_string().replace("1E+2", "100"), same(&sorted(&item)));
                    items.push(key);
                }
            }
            assert_eq!(engine.items("a.table-1").await.unwrap().len(), items.len());
            for key in items {
                engine.call("DeleteItem", json!({ "TableName": "a.table-1", "Key": key })).await.unwrap();
            }
            assert_eq!(engine.items("a.table-1").await.unwrap(), Vec::<Value>::new());
        }
    }

    /// Sorts attributes by name, because the engine may return them in any order.
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut names: Vec<_> = fields.keys().collect();
                names.sort();
                names.into_iter().map(|name| (name.clone(), sorted(&fields[name]))).collect()
            }
            Value::Array(values) => values.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }

    #[tokio::test]
    async fn keys_are_kept_once() {
        let directory = tempfile::tempdir().unwrap();
        let engine = with_table(Engine::open(directory.path()).unwrap()).await;
        for (sort, more) in
            [("1", json!({})), ("2", json!({ "x": { "S": "y" } })), ("3", json!({ "x": { "S": "\u{0}" } }))]
        {
            let mut item = json!({ "PK": { "S": "a" }, "SK": { "S": sort } });
            item.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            engine.call("PutItem", json!({ "TableName": "a.table-1", "Item": item })).await.unwrap();
        }
        let kept = kept(&engine);
        assert_eq!(kept[..2], ["", r#"{"x":{"S":"y"}}"#]);
        assert!(kept[2].starts_with(" {"), "{kept:?}");
    }

    /// Scans by segment still work, although the hash that locates a segment is not stored as the
    /// engine expects.
    #[tokio::test]
    async fn a_parallel_scan_finds_in_a_file_what_it_finds_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let mut found = Vec::new();
        for engine in [Engine::memory().unwrap(), Engine::open(directory.path()).unwrap()] {
            let engine = with_table(engine).await;
            for number in 0..40 {
                let item = json!({ "PK": { "S": number.to_string() }, "SK": { "S": "a" } });
                engine.call("PutItem", json!({ "TableName": "a.table-1", "Item": item })).await.unwrap();
            }
            for segment in 0..3 {
                let scan = json!({ "TableName": "a.table-1", "Segment": segment, "TotalSegments": 3 });
                let items = engine.call("Scan", scan).await.unwrap()["Items"].clone();
                let mut keys: Vec<_> = items.as_array().unwrap().iter().map(|item| item["PK"].to_string()).collect();
                keys.sort();
                found.push(keys);
            }
        }
        let in_file = found.split_off(3);
        assert!(found.iter().all(|segment| !segment.is_empty()), "{found:?}");
        assert_eq!(found.iter().map(Vec::len).sum::<usize>(), 40);
        assert_eq!(in_file, found);
    }

    #[tokio::test]
    async fn a_table_can_be_deleted_and_made_again() {
        let directory = tempfile::tempdir().unwrap();
        for engine in [Engine::memory().unwrap(), Engine::open(directory.path()).unwrap()] {
            let item = json!({ "TableName": "a.table-1", "Item": { "PK": { "S": "a" }, "SK": { "S": "b" } } });
            let mut engine = engine;
            for _ in 0..2 {
                engine = with_table(engine).await;
                engine.call("PutItem", item.clone()).await.unwrap();
                // Refused, because there is no such table. The existing table is unchanged.
                assert!(engine.call("DeleteTable", json!({ "TableName": "another" })).await.is_err());
                assert_eq!(engine.items("a.table-1").await.unwrap(), [item["Item"].clone()]);
                engine.call("DeleteTable", json!({ "TableName": "a.table-1" })).await.unwrap();
                assert!(engine.call("PutItem", item.clone()).await.is_err());
            }
        }
    }

    #[tokio::test]
    async fn a_table_that_is_not_deleted_is_as_before() {
        let directory = tempfile::tempdir().unwrap();
        let engine = with_table(Engine::open(directory.path()).unwrap()).await;
        let item = json!({ "PK": { "S": "a" }, "SK": { "S": "b" } });
        engine.call("PutItem", json!({ "TableName": "a.table-1", "Item": item })).await.unwrap();
        let protect = json!({ "TableName": "a.table-1", "DeletionProtectionEnabled": true });
        engine.call("UpdateTable", protect).await.unwrap();
        assert!(engine.call("DeleteTable", json!({ "TableName": "a.table-1" })).await.is_err());
        assert_eq!(kept(&engine), [""]);
        assert_eq!(engine.items("a.table-1").await.unwrap(), [item]);
    }
}
