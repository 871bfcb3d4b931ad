//! Rejects requests that DynamoDB rejects and the engine does not
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>).
//! `tests/it/limits.rs` covers the requests that the engine itself rejects.

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use super::limited_engine::LimitedEngine;
use super::schema::TableKeys;
use super::{error_responses, expression, requested_items};
use crate::aws_json::EngineResponse;

/// Maximum number of operators and functions in an expression.
const MAX_OPERATORS: usize = 300;
/// Maximum number of operands of `IN`.
const MAX_IN_OPERANDS: usize = 100;
/// Maximum length in bytes of a partition key, and of a sort key.
const MAX_PARTITION_KEY_BYTES: usize = 2_048;
const MAX_SORT_KEY_BYTES: usize = 1_024;

const CONDITION_FIELDS: [&str; 3] = ["ConditionExpression", "FilterExpression", "KeyConditionExpression"];

impl LimitedEngine {
    /// Returns the error of a request that DynamoDB would reject without reading the stored items.
    pub(super) async fn invalid(
        &self,
        operation: &str,
        body: &Value,
    ) -> Result<Option<EngineResponse>, ConnectorError> {
        match operation {
            "TransactWriteItems" | "TransactGetItems" => {
                for part in body["TransactItems"].as_array().into_iter().flatten() {
                    let parts = part.as_object().into_iter().flat_map(|part| part.values());
                    for part in parts {
                        let schema = self.schema(part["TableName"].as_str().unwrap_or_default()).await?;
                        if let Some(message) = of_one(part, &schema) {
                            return Ok(Some(error_responses::invalid(message)));
                        }
                    }
                }
            }
            "BatchWriteItem" => {
                for (table, entries) in body["RequestItems"].as_object().into_iter().flatten() {
                    let schema = self.schema(table).await?;
                    let mut items = entries.as_array().into_iter().flatten().map(requested_items::of_batch);
                    if let Some(message) = items.find_map(|item| of_index_keys(&schema, |name| Some(&item[name]))) {
                        return Ok(Some(error_responses::invalid(message)));
                    }
                }
            }
            _ => {
                let schema = self.schema(body["TableName"].as_str().unwrap_or_default()).await?;
                return Ok(of_one(body, &schema).map(error_responses::invalid));
            }
        }
        Ok(None)
    }
}

/// Returns the reason why a request for one item, or one part of a transaction, is invalid.
fn of_one(request: &Value, schema: &TableKeys) -> Option<&'static str> {
    let expression = |name: &str| expression::tokens(request[name].as_str().unwrap_or_default());
    let update = expression("UpdateExpression");
    let conditions = CONDITION_FIELDS.map(expression);
    let operators = conditions.iter().map(|tokens| expression::operators_of_condition(tokens));
    if operators.chain([expression::operators_of_update(&update)]).any(|operators| operators > MAX_OPERATORS) {
        return Some("Invalid expression: it contains more than 300 operators and functions");
    }
    if conditions.iter().any(|tokens| expression::operands_of_in(tokens) > MAX_IN_OPERANDS) {
        return Some("Invalid ConditionExpression: the IN operator is provided with more than 100 operands");
    }
    of_index_keys(schema, |attribute| {
        if request["Item"].is_object() {
            return Some(&request["Item"][attribute]);
        }
        let is_name = |name: &str| request["ExpressionAttributeNames"][name].as_str().unwrap_or(name) == attribute;
        let placeholder = expression::value_set(&update, is_name)?;
        Some(&request["ExpressionAttributeValues"][placeholder])
    })
}

/// Returns the reason why the value of an index key is invalid, if one is.
fn of_index_keys<'a>(schema: &TableKeys, value_of: impl Fn(&str) -> Option<&'a Value>) -> Option<&'static str> {
    let is_longer = |attribute: &str, most: usize| {
        value_of(attribute).and_then(|value| value["S"].as_str()).is_some_and(|text| text.len() > most)
    };
    let mut indexes = schema.local.values().map(|index| &index.keys).chain(schema.global.values());
    indexes.find_map(|keys| {
        if is_longer(&keys.partition, MAX_PARTITION_KEY_BYTES) {
            Some("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
        } else if keys.sort.as_ref().is_some_and(|sort| is_longer(sort, MAX_SORT_KEY_BYTES)) {
            Some("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
        } else {
            None
        }
    })
}
