//! Page tokens of searches of logged models (`SearchLoggedModelsPaginationToken`).
//!
//! MLflow's tokens contain the search that they belong to in plain text. If a token belongs to a
//! different search, MLflow's message names the part that differs. The tokens here contain the
//! search as well, but instead of MLflow's offset they contain the sort key of the last model.

use mlflow_api::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::model_order::ModelOrderBy;
use crate::page_token::{not_ours, parsed, printed_base64};
use crate::python_repr;
use crate::sort_key::SortKey;

/// The search that a page token of logged models must match. As in MLflow, it does not include the
/// datasets.
#[derive(Clone, Copy, Debug)]
pub struct ModelPageTokens<'a> {
    /// The experiments, in the order of the request.
    pub experiment_ids: &'a [String],
    /// The filter string. Empty for none.
    pub filter: &'a str,
    /// The order clauses.
    pub order_by: &'a [ModelOrderBy],
}

impl ModelPageTokens<'_> {
    /// Creates the token of the page that begins after `last`.
    #[must_use]
    pub fn token(&self, last: &SortKey) -> String {
        let [experiment_ids, filter_string, order_by] = self.parts();
        let token = json!({
            "experiment_ids": experiment_ids, "filter_string": filter_string, "order_by": order_by, "k": last,
        });
        printed_base64(&token)
    }

    /// Decodes a page token, and returns the key that the page begins after. Returns `None` for the
    /// empty token, which requests the first page.
    ///
    /// # Errors
    /// Fails with MLflow's message if the token belongs to a different search. Experiments, filter
    /// and ordering are compared in this order.
    pub fn after(&self, token: &str) -> Result<Option<SortKey>> {
        if token.is_empty() {
            return Ok(None);
        }
        let value = parsed(token)?;
        let Value::Object(found) = &value else { return Err(Error::invalid(not_ours(&value))) };
        let [experiment_ids, filter_string, order_by] = self.parts();
        let part = |name: &str| found.get(name).cloned().unwrap_or_default();
        let differs = |what: &str, requested: &str, expected: &Value, found: &Value| {
            Error::invalid(format!(
                "{what} in the page token {} the requested {requested}. Expected: {}. Found: {}",
                if what.ends_with('s') { "do not match" } else { "does not match" },
                printed(expected),
                printed(found)
            ))
        };
        if part("experiment_ids") != experiment_ids {
            return Err(differs("Experiment IDs", "experiment IDs", &experiment_ids, &part("experiment_ids")));
        }
        let found_filter = or_null(part("filter_string"));
        if found_filter != filter_string {
            return Err(differs("Filter string", "filter string", &filter_string, &found_filter));
        }
        let found_order = or_null(part("order_by"));
        if found_order != order_by {
            return Err(differs("Order by", "order by", &order_by, &found_order));
        }
        SortKey::deserialize(part("k")).map(Some).map_err(|_| Error::invalid(not_ours(&value)))
    }

    /// Returns experiments, filter and ordering in the format of MLflow's tokens.
    fn parts(&self) -> [Value; 3] {
        let text = |text: &str| or_null(Value::from(text));
        let clause = |clause: &ModelOrderBy| {
            json!({
                "field_name": clause.field,
                "ascending": clause.ascending,
                "dataset_name": text(&clause.dataset_name),
                "dataset_digest": text(&clause.dataset_digest),
            })
        };
        let order_by = Value::Array(self.order_by.iter().map(clause).collect());
        [Value::from(self.experiment_ids), text(self.filter), or_null(order_by)]
    }
}

/// Converts a value of a token like Python's `value or None`.
fn or_null(value: Value) -> Value {
    let is_false = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(is_true) => !is_true,
        Value::Null => true,
    };
    if is_false { Value::Null } else { value }
}

/// Formats a value like Python's `str`.
fn printed(value: &Value) -> String {
    value.as_str().map_or_else(|| python_repr::data(value), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(field: &str) -> ModelOrderBy {
        let nothing = String::new;
        ModelOrderBy { field: field.to_owned(), ascending: false, dataset_name: nothing(), dataset_digest: nothing() }
    }

    #[test]
    fn a_token_leads_back_to_its_key() {
        let key: SortKey = serde_json::from_str(r#"[["d",{"i":5}],["a",{"t":"x"}]]"#).unwrap();
        let (ids, order) = (["1".to_owned(), "2".to_owned()], [clause("name")]);
        let pages = ModelPageTokens { experiment_ids: &ids, filter: "name = 'é'", order_by: &order };
        assert_eq!(pages.after(&pages.token(&key)).unwrap(), Some(key));
        assert_eq!(pages.after("").unwrap(), None);
    }

    #[test]
    fn a_token_of_another_search_is_refused_as_mlflow_refuses_it() {
        let key: SortKey = serde_json::from_str(r#"[["d",{"i":5}],["a",{"t":"x"}]]"#).unwrap();
        let (ids, others) = (["1".to_owned()], ["2".to_owned(), "1".to_owned()]);
        let order = [clause("name")];
        let pages = ModelPageTokens { experiment_ids: &ids, filter: "", order_by: &[] };
        let token = pages.token(&key);
        let refused = |pages: ModelPageTokens| pages.after(&token).unwrap_err().message;
        // If there are several differences, the first one is reported.
        assert_eq!(
            refused(ModelPageTokens { experiment_ids: &others, filter: "a", order_by: &order }),
            "Experiment IDs in the page token do not match the requested experiment IDs. Expected: ['2', '1']. Found: ['1']"
        );
        assert_eq!(
            refused(ModelPageTokens { filter: "name = 'n'", order_by: &order, ..pages }),
            "Filter string in the page token does not match the requested filter string. Expected: name = 'n'. Found: None"
        );
        assert_eq!(
            refused(ModelPageTokens { order_by: &order, ..pages }),
            "Order by in the page token does not match the requested order by. Expected: [{'field_name': 'name', \
             'ascending': False, 'dataset_name': None, 'dataset_digest': None}]. Found: None"
        );
        let made_up = |json: &str| pages.after(&printed_base64(&serde_json::from_str(json).unwrap())).unwrap_err();
        assert_eq!(
            made_up("{}").message,
            "Experiment IDs in the page token do not match the requested experiment IDs. Expected: ['1']. Found: None"
        );
        let offset = made_up(r#"{"experiment_ids": ["1"], "filter_string": "", "offset": 3}"#).message;
        assert!(offset.starts_with("Invalid page token, parsed value="), "{offset}");
        assert!(made_up("5").message.starts_with("Invalid page token, parsed value=5"));
    }
}
