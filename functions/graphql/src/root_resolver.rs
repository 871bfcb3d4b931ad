//! Resolves the root fields: the fields of `Query` and `Mutation`.

use apollo_compiler::resolvers::{AsyncObjectValue, AsyncResolvedValue, FieldError, ResolveInfo};
use apollo_compiler::response::JsonValue;
use apollo_compiler::response::serde_json_bytes::json;
use futures::future::BoxFuture;

use crate::endpoint_calls::{EndpointCalls, failure};
use crate::response_object::ResponseObject;
use crate::root_endpoints;

/// The object whose fields are the root fields.
pub(crate) struct RootObject<'r> {
    type_name: &'r str,
    requests: &'r EndpointCalls,
}

impl<'r> RootObject<'r> {
    /// Returns the root object of a type, `Query` or `Mutation`.
    pub(crate) fn new(type_name: &'r str, requests: &'r EndpointCalls) -> Self {
        Self { type_name, requests }
    }
}

impl AsyncObjectValue for RootObject<'_> {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn resolve_field<'a>(
        &'a self,
        info: &'a ResolveInfo<'a>,
    ) -> BoxFuture<'a, Result<AsyncResolvedValue<'a>, FieldError>> {
        Box::pin(async move {
            let root = info.field_name();
            let answer = match root {
                "test" => {
                    let given = info.arguments().get("inputString");
                    let input = given.ok_or_else(|| failure("The field 'test' needs an 'inputString'."))?;
                    json!({ "output": input })
                }
                // As in stock MLflow, this mutation returns null.
                "testMutation" => return Ok(AsyncResolvedValue::null()),
                root => {
                    let endpoint = root_endpoints::endpoint(root).ok_or_else(|| self.unknown_field_error(info))?;
                    match info.arguments().get("input") {
                        Some(input @ JsonValue::Object(_)) => self.requests.call(endpoint, input).await?,
                        _ => return Err(failure(&format!("The field '{root}' needs an 'input'."))),
                    }
                }
            };
            let type_name = info.field_definition().ty.inner_named_type().as_str();
            Ok(AsyncResolvedValue::object(ResponseObject::owned(type_name, answer, self.requests)))
        })
    }
}
