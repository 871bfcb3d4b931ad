//! Endpoints for assessments of traces. Their messages contain values of any type, so they are
//! parsed as JSON.

use access::{Action, Needs, Resource, Scope, Target};
use entities::now_ms;
use key_schema::sha256_128;
use mlflow_api::assessments::{Assessment, AssessmentChange, AssessmentResponse};
use mlflow_api::checks::Check::Required;
use mlflow_api::proto_json::{field, message, snake_case};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{AssessmentId, Request, Result, TraceId};
use rand::RngExt;
use serde_json::{Map, Value};
use service::Endpoint;

use crate::store::Store;
use crate::trace_path::parse_trace_id;

pub(crate) struct Create {
    trace: TraceId,
    id: AssessmentId,
    assessment: Assessment,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = AssessmentResponse;

    fn read(request: &Request) -> Result<Self> {
        let body = request.object(&[("assessment", &[Required])])?;
        let empty = Map::new();
        let (id, assessment) = Assessment::read(message(&body, "assessment").unwrap_or(&empty), now_ms())?;
        let trace = parse_trace_id(request)?;
        let has_time = message(&body, "assessment").is_some_and(|sent| field(sent, "create_time").is_some());
        let id = id.unwrap_or_else(|| {
            AssessmentId::new(if has_time { digest(request, &trace) } else { rand::rng().random() })
        });
        Ok(Self { trace, id, assessment })
    }

    fn needs(&self) -> Needs {
        Needs::of_in(Action::Create, Resource::Assessment, Target::Trace(self.trace.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<AssessmentResponse> {
        let assessment = store.assessment_create(&scope.trace(&self.trace)?, &self.id, &self.assessment).await?;
        Ok(AssessmentResponse { assessment: assessment.json(&self.trace, &self.id) })
    }
}

/// Returns a digest of a request. Identical requests within one millisecond create one entity, so
/// that a client that received no response may retry.
fn digest(request: &Request, trace: &TraceId) -> u128 {
    sha256_128(&[trace.as_str().as_bytes(), &request.body].concat())
}

/// An assessment, as named by the path of a request.
struct AssessmentPath {
    trace: TraceId,
    id: String,
}

impl AssessmentPath {
    fn of(request: &Request) -> Result<Self> {
        Ok(Self { trace: parse_trace_id(request)?, id: request.path_part("assessment_id").to_owned() })
    }
}

pub(crate) struct Get(AssessmentPath);

impl Endpoint for Get {
    type Store = Store;
    type Answer = AssessmentResponse;

    fn read(request: &Request) -> Result<Self> {
        AssessmentPath::of(request).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::of_in(Action::Read, Resource::Assessment, Target::Trace(self.0.trace.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<AssessmentResponse> {
        let (id, assessment) = store.assessment_get(&scope.trace(&self.0.trace)?, &self.0.id).await?;
        Ok(AssessmentResponse { assessment: assessment.json(&self.0.trace, &id) })
    }
}

pub(crate) struct Modify {
    path: AssessmentPath,
    change: AssessmentChange,
}

impl Endpoint for Modify {
    type Store = Store;
    type Answer = AssessmentResponse;

    fn read(request: &Request) -> Result<Self> {
        let body = request.object(&[("assessment", &[Required]), ("update_mask", &[Required])])?;
        let mask = field(&body, "update_mask").and_then(Value::as_str).unwrap_or_default();
        let paths: Vec<_> = mask.split(',').map(snake_case).collect();
        let empty = Map::new();
        let sent = message(&body, "assessment").unwrap_or(&empty);
        let change = AssessmentChange::read(sent, paths.iter().map(String::as_str))?;
        Ok(Self { path: AssessmentPath::of(request)?, change })
    }

    fn needs(&self) -> Needs {
        Needs::of_in(Action::Update, Resource::Assessment, Target::Trace(self.path.trace.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<AssessmentResponse> {
        let AssessmentPath { trace, id } = self.path;
        let (id, assessment) = store.assessment_update(&scope.trace(&trace)?, &id, self.change).await?;
        Ok(AssessmentResponse { assessment: assessment.json(&trace, &id) })
    }
}

pub(crate) struct Delete(AssessmentPath);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        AssessmentPath::of(request).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::of_in(Action::Delete, Resource::Assessment, Target::Trace(self.0.trace.clone()))
    }

    /// Deleting an assessment that does not exist is a no-op.
    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        if let Some(trace) = scope.known_trace(&self.0.trace)? {
            store.assessment_delete(&trace, &self.0.id).await?;
        }
        Ok(EmptyResponse {})
    }
}
