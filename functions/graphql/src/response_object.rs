//! The objects of a response. Their fields are resolved from an endpoint's response and converted
//! to the types of the schema.
//!
//! A field that is missing in the response has the default value of a protobuf message: an empty
//! text, 0, no elements, or an empty message.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use apollo_compiler::ast::Type;
use apollo_compiler::executable::{Selection, SelectionSet};
use apollo_compiler::resolvers::{AsyncObjectValue, AsyncResolvedValue, FieldError, ResolveInfo};
use apollo_compiler::response::JsonValue;
use apollo_compiler::schema::ExtendedType;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use crate::endpoint_calls::{EndpointCalls, failure};
use crate::query_limits;

/// Type name of a run in the schema. Two of its fields are not in the responses of `runs/get` and
/// `runs/search`, and are resolved by further calls.
const RUN_TYPE: &str = "MlflowRunExtension";
/// Type name of a run's metric, whose value may be NaN.
const RUN_METRIC_TYPE: &str = "MlflowMetricExtension";
/// Type name of the object that echoes its input.
const ECHO_TYPE: &str = "Test";
/// Type name of an error object. MLflow never returns one: errors are reported next to the data.
const API_ERROR_TYPE: &str = "ApiError";
/// Number of runs whose related objects are read concurrently.
const CONCURRENCY: usize = 16;
/// Number of runs whose model versions are read together.
const BATCH_SIZE: usize = 100;

/// An object of the response: a JSON object and its type in the schema.
pub(crate) struct ResponseObject<'v> {
    type_name: &'v str,
    value: ObjectValue<'v>,
    requests: &'v EndpointCalls,
}

/// The value of an object: borrowed from its parent, owned, or shared by several objects.
enum ObjectValue<'v> {
    Borrowed(&'v JsonValue),
    Owned(JsonValue),
    Shared(Arc<JsonValue>),
}

impl<'v> From<Cow<'v, JsonValue>> for ObjectValue<'v> {
    fn from(value: Cow<'v, JsonValue>) -> Self {
        match value {
            Cow::Borrowed(value) => Self::Borrowed(value),
            Cow::Owned(value) => Self::Owned(value),
        }
    }
}

impl Deref for ObjectValue<'_> {
    type Target = JsonValue;

    fn deref(&self) -> &JsonValue {
        match self {
            Self::Borrowed(value) => value,
            Self::Owned(value) => value,
            Self::Shared(value) => value,
        }
    }
}

type Resolved<'a> = Result<AsyncResolvedValue<'a>, FieldError>;

impl<'v> ResponseObject<'v> {
    /// Returns an object that owns its value.
    pub(crate) fn owned(type_name: &'v str, value: JsonValue, requests: &'v EndpointCalls) -> Self {
        Self { type_name, value: ObjectValue::Owned(value), requests }
    }

    /// Returns a text field in the object's `info`, or an empty text if the field is missing.
    fn info(&self, name: &str) -> &str {
        self.value.get("info").and_then(|info| info.get(name)).and_then(JsonValue::as_str).unwrap_or_default()
    }

    async fn experiment(&self) -> Result<Arc<JsonValue>, FieldError> {
        self.requests.experiment(self.info("experiment_id")).await
    }

    async fn model_versions(&self) -> Result<Arc<JsonValue>, FieldError> {
        self.requests.model_versions(self.info("run_id")).await
    }

    /// Converts the value of a field to the type that the field has in the schema.
    fn complete<'a>(&'a self, info: &'a ResolveInfo<'a>, ty: &'a Type, value: Cow<'a, JsonValue>) -> Resolved<'a> {
        let name = match ty {
            Type::List(inner) | Type::NonNullList(inner) => {
                let elements: Vec<Cow<'a, JsonValue>> = match value {
                    Cow::Owned(JsonValue::Array(elements)) => elements.into_iter().map(Cow::Owned).collect(),
                    Cow::Borrowed(JsonValue::Array(elements)) => elements.iter().map(Cow::Borrowed).collect(),
                    _ => Vec::new(),
                };
                let each = elements.into_iter().map(move |element| self.complete(info, inner, element));
                return Ok(AsyncResolvedValue::List(Box::pin(stream::iter(each.collect::<Vec<_>>()))));
            }
            Type::Named(name) | Type::NonNullNamed(name) => name.as_str(),
        };
        match info.schema().types.get(name) {
            Some(ExtendedType::Object(_)) if name == API_ERROR_TYPE => Ok(AsyncResolvedValue::null()),
            Some(ExtendedType::Object(_)) => Ok(AsyncResolvedValue::object(ResponseObject {
                type_name: name,
                value: value.into(),
                requests: self.requests,
            })),
            Some(ExtendedType::Enum(names)) => {
                let first = || names.values.keys().next().map_or(JsonValue::Null, |name| name.as_str().into());
                Ok(AsyncResolvedValue::Leaf(if value.is_null() { first() } else { value.into_owned() }))
            }
            _ => self.scalar(name, value.into_owned()).map(AsyncResolvedValue::Leaf),
        }
    }

    fn scalar(&self, type_name: &str, value: JsonValue) -> Result<JsonValue, FieldError> {
        Ok(match (type_name, value) {
            ("Float", JsonValue::Null) => 0.0.into(),
            ("Float", JsonValue::Number(number)) => number.as_f64().into(),
            // Endpoints represent numbers that JSON does not support, such as infinity, as texts.
            ("Float", JsonValue::String(text)) if self.type_name == RUN_METRIC_TYPE && text.as_str() == "NaN" => {
                JsonValue::Null
            }
            ("Float", JsonValue::String(text)) => {
                let text = text.as_str().to_lowercase();
                return Err(failure(&format!("Float cannot represent non numeric value: {text}")));
            }
            ("Boolean", JsonValue::Null) => false.into(),
            ("LongString", JsonValue::Null) => "0".into(),
            ("LongString" | "String", JsonValue::Number(number)) => number.to_string().into(),
            // A missing input is echoed as null, unlike a missing text in a message.
            ("String", JsonValue::Null) if self.type_name == ECHO_TYPE => JsonValue::Null,
            ("String", JsonValue::Null) => "".into(),
            (_, value) => value,
        })
    }

    /// Resolves the runs of a page. If the query selects their experiments or model versions, these
    /// are read in advance for several runs concurrently, because the library would resolve one run
    /// after another.
    fn runs<'a>(&'a self, info: &'a ResolveInfo<'a>, runs: &'a [JsonValue]) -> Resolved<'a> {
        let asks = |name| {
            let mut seen = HashSet::new();
            info.field_selections().iter().any(|field| selects(info, &field.selection_set, name, &mut seen))
        };
        let (experiments, versions) = (asks("experiment"), asks("modelVersions"));
        if versions && !self.requests.count_runs_with_versions(runs.len()) {
            return Err(failure(&format!(
                "The field 'modelVersions' can be selected for at most {} runs in a query.",
                query_limits::MAX_RUNS_WITH_VERSIONS
            )));
        }
        let each = stream::iter(runs.chunks(BATCH_SIZE)).then(move |runs| async move {
            let run = |run| ResponseObject {
                type_name: RUN_TYPE,
                value: ObjectValue::Borrowed(run),
                requests: self.requests,
            };
            let runs: Vec<_> = runs.iter().map(run).collect();
            if versions {
                let ids: Vec<_> = runs.iter().map(|run| run.info("run_id")).collect();
                self.requests.read_model_versions(&ids).await;
            }
            stream::iter(runs)
        });
        let each = each.flatten().map(move |run| async move {
            // Errors are ignored here, because they are cached, and returned when the field is
            // resolved.
            if experiments {
                drop(run.experiment().await);
            }
            if versions {
                drop(run.model_versions().await);
            }
            Ok(AsyncResolvedValue::object(run))
        });
        Ok(AsyncResolvedValue::List(Box::pin(each.buffered(CONCURRENCY))))
    }
}

impl AsyncObjectValue for ResponseObject<'_> {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> BoxFuture<'a, Resolved<'a>> {
        Box::pin(async move {
            let field = info.field_name();
            let name = snake_case(field);
            let value = match (self.type_name, field) {
                (RUN_TYPE, "experiment") => {
                    let (type_name, value) = ("MlflowExperiment", ObjectValue::Shared(self.experiment().await?));
                    return Ok(AsyncResolvedValue::object(ResponseObject {
                        type_name,
                        value,
                        requests: self.requests,
                    }));
                }
                (RUN_TYPE, "modelVersions") => Cow::Owned(JsonValue::clone(&*self.model_versions().await?)),
                _ => self.value.get(name.as_str()).map_or(Cow::Owned(JsonValue::Null), Cow::Borrowed),
            };
            if !self.requests.add_weight(field.len() + value.as_str().map_or(0, str::len)) {
                return Ok(AsyncResolvedValue::SkipForPartialExecution);
            }
            let ty = &info.field_definition().ty;
            match value {
                Cow::Borrowed(JsonValue::Array(runs)) if ty.inner_named_type() == RUN_TYPE => self.runs(info, runs),
                value => self.complete(info, ty, value),
            }
        })
    }
}

/// Checks whether a selection contains a field, directly or in a fragment. Each fragment is visited
/// once.
fn selects<'a>(info: &'a ResolveInfo<'_>, set: &'a SelectionSet, name: &str, seen: &mut HashSet<&'a str>) -> bool {
    set.selections.iter().any(|selection| match selection {
        Selection::Field(field) => field.name == name,
        Selection::InlineFragment(inline) => selects(info, &inline.selection_set, name, seen),
        Selection::FragmentSpread(spread) => {
            seen.insert(spread.fragment_name.as_str())
                && spread
                    .fragment_def(info.document())
                    .is_some_and(|fragment| selects(info, &fragment.selection_set, name, seen))
        }
    })
}

/// Converts the name of a field to its name in the responses of endpoints.
fn snake_case(name: &str) -> String {
    name.chars().fold(String::with_capacity(name.len() + 4), |mut snake, character| {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
        snake
    })
}
