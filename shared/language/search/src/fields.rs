//! The fields of an entity that are indexed by value and by text.

use serde::{Deserialize, Serialize};

use crate::filter::DatasetField;

/// The field of a run's name, whose text is always indexed.
pub const RUN_NAME: &str = "attributes.run_name";
/// The field of the user who started a run.
pub const USER_ID: &str = "attributes.user_id";

/// Returns the name of a field of a run's datasets, such as their names. A run has one value of the
/// field for each of its datasets.
#[must_use]
pub fn of_datasets(field: DatasetField) -> String {
    format!("{DATASETS_PREFIX}{}", field.name())
}

/// Checks whether a field is a field of datasets.
pub(crate) fn is_of_datasets(field: &str) -> bool {
    field.starts_with(DATASETS_PREFIX)
}

/// Prefix of the fields of datasets, whose values are always indexed.
const DATASETS_PREFIX: &str = "datasets.";

/// The fields that an operator has configured to be indexed. In addition, params, metrics, the
/// status, the run name and datasets are always indexed by value.
///
/// Fields are named as in filters: `attributes.run_name`, `tags.<key>`, `params.<key>`,
/// `datasets.name`. In a pattern, `*` matches any text. A pattern with the prefix `!` excludes
/// fields that earlier patterns include. If several patterns match, the last one applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexedFields {
    /// Patterns of the fields that are indexed by their whole value.
    pub values: Vec<String>,
    /// Patterns of the fields that are indexed by parts of their text.
    pub text: Vec<String>,
}

impl Default for IndexedFields {
    /// Returns the default configuration. It includes all tags except those in MLflow's own
    /// namespace, because MLflow sets a dozen tags on each run that searches never use. Two of
    /// MLflow's tags are included nevertheless: the parent of a nested run, and the type by which
    /// pages of the UI find evaluation runs.
    fn default() -> Self {
        let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let values = owned(&["tags.*", "!tags.mlflow.*", "tags.mlflow.parentRunId", "tags.mlflow.runType"]);
        Self { values, text: owned(&[RUN_NAME]) }
    }
}

impl IndexedFields {
    /// Checks whether the whole values of a field are indexed.
    #[must_use]
    pub fn has_value(&self, field: &str) -> bool {
        is_of_datasets(field) || last_match(&self.values, field)
    }

    /// Checks whether the tokens of a field's text are indexed.
    #[must_use]
    pub fn has_text(&self, field: &str) -> bool {
        field == RUN_NAME || last_match(&self.text, field)
    }
}

/// The fields that are indexed in all of several experiments. Experiments may have different
/// settings, and a search through all of them can only use the index of a field that each of them
/// indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonFields(Vec<IndexedFields>);

impl Default for CommonFields {
    fn default() -> Self {
        Self(vec![IndexedFields::default()])
    }
}

impl CommonFields {
    /// Combines the settings of several experiments.
    #[must_use]
    pub fn of(each: impl IntoIterator<Item = IndexedFields>) -> Self {
        let mut different = Vec::new();
        for fields in each {
            if !different.contains(&fields) {
                different.push(fields);
            }
        }
        Self(different)
    }

    /// Checks whether the whole values of a field are indexed in every experiment.
    #[must_use]
    pub fn has_value(&self, field: &str) -> bool {
        self.0.iter().all(|fields| fields.has_value(field))
    }

    /// Checks whether the tokens of a field's text are indexed in every experiment.
    #[must_use]
    pub fn has_text(&self, field: &str) -> bool {
        self.0.iter().all(|fields| fields.has_text(field))
    }
}

fn last_match(patterns: &[String], field: &str) -> bool {
    for pattern in patterns.iter().rev() {
        let (wanted, pattern) = pattern.strip_prefix('!').map_or((true, pattern.as_str()), |rest| (false, rest));
        if matches(pattern, field) {
            return wanted;
        }
    }
    false
}

/// Checks whether a pattern matches a field. Each piece between stars is matched as early as
/// possible, except for the last one, which is matched at the end.
fn matches(pattern: &str, field: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else { return pattern == field };
    let Some(mut field) = field.strip_prefix(beginning) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        match field.find(piece) {
            Some(at) => field = &field[at + piece.len()..],
            None => return false,
        }
    }
    field.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_that_matches_counts() {
        let fields = IndexedFields::default();
        for (field, expected) in [
            ("tags.env", true),
            ("tags.", true),
            ("tags.mlflow.user", false),
            ("tags.mlflow.parentRunId", true),
            ("tags.mlflow.runType", true),
            ("params.env", false),
            ("attributes.user_id", false),
        ] {
            assert_eq!(fields.has_value(field), expected, "{field}");
        }
        assert!(fields.has_text("attributes.run_name") && !fields.has_text("tags.env"));
        let nothing = IndexedFields { values: Vec::new(), text: vec!["!attributes.run_name".to_owned()] };
        assert!(nothing.has_text("attributes.run_name") && !nothing.has_value("tags.env"));
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, field, expected) in [
            ("*", "", true),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*a", "a", false),
            ("a*b*c", "axbyc", true),
            ("a*b*c", "axyc", false),
            ("a**c", "ac", true),
            ("*é*", "aéb", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern, field), expected, "{pattern} {field}");
        }
    }

    #[test]
    fn what_a_stored_setting_leaves_out_is_as_by_default() {
        let fields: IndexedFields = serde_json::from_str(r#"{"text":["tags.note"]}"#).unwrap();
        assert_eq!(fields.values, IndexedFields::default().values);
        assert!(fields.has_text("tags.note"));
        let json = serde_json::to_string(&fields).unwrap();
        assert_eq!(serde_json::from_str::<IndexedFields>(&json).unwrap(), fields);
    }

    #[test]
    fn experiments_have_in_common_what_each_has() {
        let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
        let one = IndexedFields { values: owned(&["tags.*"]), text: owned(&["tags.note"]) };
        let other = IndexedFields { values: owned(&["tags.team"]), text: Vec::new() };
        let both = CommonFields::of([one.clone(), other, one.clone()]);
        assert!(both.has_value("tags.team") && !both.has_value("tags.note"));
        assert!(both.has_text(RUN_NAME) && !both.has_text("tags.note"));
        let alone = CommonFields::of([one]);
        assert!(alone.has_value("tags.note") && alone.has_text("tags.note"));
    }
}
