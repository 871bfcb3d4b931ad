//! Online configurations, each of which determines the traces that a scorer runs on automatically.
//! MLflow has no protobuf messages for these requests.

use access::{Action, MAX_NAMED_ENTITIES, Needs, Resource, Scope, Target};
use mlflow_api::checks::Check::{List, Required, Text, TextItems};
use mlflow_api::scorers::{OnlineConfigResponse, OnlineConfigsResponse as Configs};
use mlflow_api::{Error, Request, Result, ScorerId, python};
use serde_json::{Map, Value};
use service::Endpoint;

use crate::request_targets::ScorerTarget;
use crate::store::Store;

pub(crate) struct SetOnlineConfig {
    scorer: ScorerTarget,
    rate: f64,
    filter: Option<String>,
}

impl Endpoint for SetOnlineConfig {
    type Store = Store;
    type Answer = OnlineConfigResponse;

    fn read(request: &Request) -> Result<Self> {
        let fields = request.object(&[
            ("experiment_id", &[Required, Text]),
            ("name", &[Required, Text]),
            ("sample_rate", &[Required]),
            ("filter_string", &[]),
        ])?;
        let filter = match fields.get("filter_string") {
            None | Some(Value::Null) => None,
            Some(Value::String(filter)) => Some(filter.clone()),
            Some(other) => {
                return Err(Error::invalid(format!(
                    "Invalid value {} for parameter 'filter_string' supplied: Value was of type '{}'. Expected type 'str' or None.",
                    python::data(other),
                    python::type_name(other)
                )));
            }
        };
        let rate = rate(fields.get("sample_rate").unwrap_or(&Value::Null))?;
        if !(0.0..=1.0).contains(&rate) {
            let rate = python::float(rate);
            return Err(Error::invalid(format!("sample_rate must be between 0.0 and 1.0, got {rate}")));
        }
        let scorer = ScorerTarget::of(text(&fields, "experiment_id"), text(&fields, "name"))?;
        Ok(Self { scorer, rate, filter })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Experiment(self.scorer.experiment))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<OnlineConfigResponse> {
        let scorer = self.scorer.granted_with_experiment(scope)?;
        let config = store.scorer_set_online_config(&scorer, self.rate, self.filter.as_deref()).await?;
        Ok(OnlineConfigResponse { config })
    }
}

pub(crate) struct OnlineConfigs(Vec<ScorerId>);

impl Endpoint for OnlineConfigs {
    type Store = Store;
    type Answer = Configs;

    fn read(request: &Request) -> Result<Self> {
        let fields = request.object(&[("scorer_ids", &[Required, List, TextItems])])?;
        let ids = fields.get("scorer_ids").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if ids.len() > MAX_NAMED_ENTITIES {
            return Err(Error::invalid(format!("A request names at most {MAX_NAMED_ENTITIES} scorers.")));
        }
        Ok(Self(ids.iter().filter_map(Value::as_str).filter_map(ScorerId::parse).collect()))
    }

    /// The permission is checked on the experiment, because a scorer is identified by its
    /// experiment and name.
    fn needs(&self) -> Needs {
        let experiments = self.0.iter().map(ScorerId::experiment);
        let experiments = experiments.map(|experiment| match experiment {
            Some(experiment) => Target::Experiment(experiment),
            None => Target::Nothing(Resource::Experiment),
        });
        let needs = Needs::nothing().and_in(Action::Read, Resource::Scorer, experiments);
        needs.or(Needs::read(Target::Nothing(Resource::Scorer)))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Configs> {
        let mut scorers = Vec::new();
        for id in self.0 {
            let Some(experiment) = id.experiment() else { continue };
            if let Some(experiment) = scope.listed_experiment(experiment)? {
                scorers.push((experiment, id));
            }
        }
        Ok(Configs { configs: store.scorer_online_configs(scorers).await? })
    }
}

fn text(fields: &Map<String, Value>, field: &str) -> String {
    fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Converts a value to a number with the rules of Python's `float`.
fn rate(value: &Value) -> Result<f64> {
    let rate = match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::String(text) => python::parse_float(text),
        _ => None,
    };
    rate.ok_or_else(|| {
        Error::invalid(format!("Invalid value {} for parameter 'sample_rate' supplied.", python::json(value)))
    })
}
