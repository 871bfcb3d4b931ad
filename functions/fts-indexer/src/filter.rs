//! The filter of the indexer's records. `template.yaml` has the same conditions, as
//! `FilterCriteria`; other feeders use this one.

use entities::attributes::{REVISION, TO_PACK};
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use serde_json::Value;

/// Whether a record of the stream is for the indexer. An item that has changed since it was indexed
/// carries a mark. An item that may carry one has a revision, as has any other whose removal
/// matters. Marks of traces, and requests to pack traces, have an attribute for it.
#[must_use]
pub fn is_wanted(record: &Value) -> bool {
    let has = |image: &str, attribute: &str, kind: &str| record["dynamodb"][image][attribute].get(kind).is_some();
    has("NewImage", RunsChanged::INDEX.sort, "S")
        || has("NewImage", TO_PACK, "N")
        || record["eventName"] == "REMOVE" && has("OldImage", REVISION, "N")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_wanted;

    /// `tests/lambda/test_template.py` reads this file and holds the template's filters against it.
    const CASES: &str = include_str!("../../../tests/lambda/filter_cases.json");

    #[test]
    fn marked_changes_and_removals_of_marked_items_are_wanted() {
        let cases: Vec<serde_json::Value> = serde_json::from_str(CASES).unwrap();
        for case in cases {
            assert_eq!(json!(is_wanted(&case["record"])), case["wanted"], "{case}");
        }
    }
}
