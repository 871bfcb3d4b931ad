//! Runs an operation: parses it, checks it against the limits and the schema, and executes it.

use apollo_compiler::Schema;
use apollo_compiler::ast::Type;
use apollo_compiler::executable::{ExecutableDocument, Operation, OperationType};
use apollo_compiler::introspection::check_max_depth;
use apollo_compiler::parser::Parser;
use apollo_compiler::request::coerce_variable_values;
use apollo_compiler::resolvers::Execution;
use apollo_compiler::response::JsonMap;
use apollo_compiler::validation::{DiagnosticList, Valid};
use mlflow_api::{Error, Result, response_size};
use serde::Serialize;

use crate::endpoint_calls::EndpointCalls;
use crate::query_limits;
use crate::root_resolver::RootObject;

/// The response to a query, whether or not it succeeded. As in MLflow, errors are plain texts
/// rather than the objects of the specification.
#[derive(Debug, Serialize)]
pub(crate) struct Response {
    data: Option<JsonMap>,
    errors: Option<Vec<String>>,
}

impl Response {
    /// Returns the response to an operation that was not executed.
    fn rejected(errors: Vec<String>) -> Self {
        Self { data: None, errors: Some(errors) }
    }
}

/// Executes the operation with this name, or the only operation if no name is given. Makes the
/// requests that the endpoints of the operation's root fields make.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the text is not GraphQL or the response would be too large.
/// All other errors are in the response.
pub(crate) async fn execute(
    schema: &Valid<Schema>,
    query: String,
    operation: Option<&str>,
    variables: &JsonMap,
    requests: &EndpointCalls,
) -> Result<Response> {
    let mut parser = Parser::new().recursion_limit(query_limits::MAX_NESTING);
    let document = parser.parse_ast(query, "query").map_err(|error| {
        let first = messages(&error.errors).into_iter().next().unwrap_or_default();
        Error::invalid(format!("The query is not valid GraphQL: {first}"))
    })?;
    if let Err(message) = query_limits::check(&document) {
        return Ok(Response::rejected(vec![message]));
    }
    let document = match document.to_executable_validate(schema) {
        Ok(document) => document,
        Err(error) => return Ok(Response::rejected(messages(&error.errors))),
    };
    let prepared = match prepare(schema, &document, operation, variables) {
        Ok(prepared) => prepared,
        Err(message) => return Ok(Response::rejected(vec![message])),
    };
    let execution = Execution::new(schema, &document)
        .operation(prepared.operation)
        .coerced_variable_values(&prepared.variables)
        .enable_schema_introspection(true);
    let executed = execution.execute_async(&RootObject::new(prepared.operation.object_type(), requests)).await;
    let executed = executed.map_err(|error| Error::internal(error.message().to_string()))?;
    if requests.is_too_heavy() {
        return Err(response_size::too_long("The answer", query_limits::MAX_RESPONSE_WEIGHT));
    }
    // The prefix that the library adds to errors of resolvers is removed.
    let message = |text: String| text.strip_prefix("resolver error: ").map(str::to_owned).unwrap_or(text);
    let errors: Vec<_> = executed.errors.into_iter().map(|error| message(error.message)).collect();
    Ok(Response { data: executed.data, errors: (!errors.is_empty()).then_some(errors) })
}

/// Returns the errors of a document. This server's GraphQL library and MLflow's both follow
/// graphql-js, so the wording matches MLflow's wherever the two libraries agree.
fn messages(errors: &DiagnosticList) -> Vec<String> {
    errors.iter().map(|error| error.unstable_to_json_compat().message.replace('"', "'")).collect()
}

/// An operation that is ready to be executed.
struct PreparedOperation<'a> {
    operation: &'a Operation,
    variables: Valid<JsonMap>,
}

fn prepare<'a>(
    schema: &Valid<Schema>,
    document: &'a Valid<ExecutableDocument>,
    name: Option<&str>,
    variables: &JsonMap,
) -> Result<PreparedOperation<'a>, String> {
    let operation = document.operations.get(name).map_err(|_| match name {
        Some(name) => format!("Unknown operation named '{name}'."),
        None if document.operations.is_empty() => "Must provide an operation.".to_owned(),
        None => "Must provide operation name if query contains multiple operations.".to_owned(),
    })?;
    if operation.operation_type == OperationType::Subscription {
        return Err("Schema is not configured to execute subscription operation.".to_owned());
    }
    check_max_depth(document, operation).map_err(|error| error.message().to_string())?;
    for variable in operation.variables.iter().filter(|variable| variable.ty.is_non_null()) {
        check_given(variable.name.as_str(), &variable.ty, variable.default_value.is_some(), variables)?;
    }
    let variables = coerce_variable_values(schema, operation, variables);
    Ok(PreparedOperation { operation, variables: variables.map_err(|error| error.message().to_string())? })
}

/// Checks that a required variable has a value.
fn check_given(name: &str, ty: &Type, has_default: bool, variables: &JsonMap) -> Result<(), String> {
    match variables.get(name) {
        None if !has_default => Err(format!("Variable '${name}' of required type '{ty}' was not provided.")),
        Some(value) if value.is_null() => Err(format!("Variable '${name}' of non-null type '{ty}' must not be null.")),
        _ => Ok(()),
    }
}
