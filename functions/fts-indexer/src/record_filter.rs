//! The filter for the stream records that the indexer receives. `FilterCriteria` in `template.yaml`
//! has equivalent conditions. Event sources without such criteria use this function.

use entities::attributes::{HOOK, REVISION, TO_PACK};
use key_schema::IndexEntry;
use key_schema::definition::PK;
use key_schema::index::RunsChanged;
use serde_json::{Value, json};

/// Checks whether a record of the stream is for the indexer.
///
/// An item that has changed since it was indexed carries a mark. Every item that can carry a mark
/// has the attribute with the revision, and so does every other item whose deletion the indexer has
/// to process. Marks of traces and requests to pack traces have a separate attribute, and events
/// for webhooks have another one. A deletion is recognized by the lack of a new image, because an
/// event source mapping supports conditions only on `dynamodb`, and not on `eventName`.
#[must_use]
pub fn is_for_indexer(record: &Value) -> bool {
    let has = |image: &str, attribute: &str, kind: &str| record["dynamodb"][image][attribute].get(kind).is_some();
    has("NewImage", RunsChanged::INDEX.sort, "S")
        || has("NewImage", TO_PACK.name(), "N")
        || has("NewImage", HOOK.name(), "N")
        || !has("NewImage", PK, "S") && has("OldImage", REVISION.name(), "N")
}

/// Returns the conditions of [`is_for_indexer`] as the patterns of the event source mapping in the
/// stack.
#[must_use]
pub fn filter_patterns() -> [Value; 4] {
    let exists = json!([{ "exists": true }]);
    [
        json!({ "dynamodb": { "NewImage": { (RunsChanged::INDEX.sort): { "S": exists } } } }),
        json!({ "dynamodb": { "NewImage": { (TO_PACK.name()): { "N": exists } } } }),
        json!({ "dynamodb": { "NewImage": { (HOOK.name()): { "N": exists } } } }),
        json!({ "dynamodb": {
            "NewImage": { PK: { "S": [{ "exists": false }] } },
            "OldImage": { (REVISION.name()): { "N": exists } },
        } }),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{filter_patterns, is_for_indexer};

    const TEMPLATE: &str = include_str!("../../../template.yaml");

    #[test]
    fn the_template_has_these_patterns() {
        let patterns = TEMPLATE.lines().filter_map(|line| line.trim().strip_prefix("- Pattern: '"));
        let patterns = patterns.map(|pattern| serde_json::from_str(pattern.strip_suffix('\'').unwrap()).unwrap());
        assert_eq!(patterns.collect::<Vec<serde_json::Value>>(), filter_patterns());
    }

    /// `tests/lambda/test_template.py` reads this file too, and applies its cases to the template's
    /// filters.
    const CASES: &str = include_str!("../../../tests/lambda/filter_cases.json");

    #[test]
    fn marked_changes_and_removals_of_marked_items_are_wanted() {
        let cases: Vec<serde_json::Value> = serde_json::from_str(CASES).unwrap();
        for case in cases {
            assert_eq!(json!(is_for_indexer(&case["record"])), case["wanted"], "{case}");
        }
    }
}
