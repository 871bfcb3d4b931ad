//! Messages about scorers (`RegisterScorer` and related messages in `service.proto`).

use serde::Serialize;

/// A version of a scorer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scorer {
    /// The id of the experiment. A number in this message, although a text in other messages.
    pub experiment_id: u64,
    /// The name.
    pub scorer_name: String,
    /// The version number, starting at 1.
    pub scorer_version: u32,
    /// The scorer, as a JSON object.
    pub serialized_scorer: String,
    /// The creation time, in ms.
    pub creation_time: i64,
    /// The id, which all versions share.
    pub scorer_id: String,
}

/// The response of `scorers/register`.
#[derive(Serialize)]
pub struct RegisterScorerResponse {
    /// The version number, starting at 1.
    pub version: u32,
    /// The id, which all versions share.
    pub scorer_id: String,
    /// The id of the experiment.
    pub experiment_id: String,
    /// The name.
    pub name: String,
    /// The scorer, as a JSON object.
    pub serialized_scorer: String,
    /// The creation time, in ms.
    pub creation_time: i64,
}

/// The response of `scorers/get`.
#[derive(Serialize)]
pub struct ScorerResponse {
    /// The version.
    pub scorer: Scorer,
}

/// The response of `scorers/list` and `versions`.
#[derive(Serialize)]
pub struct ScorersResponse {
    /// The versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scorers: Vec<Scorer>,
}

/// The configuration for running a scorer automatically on a sample of the traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnlineScoringConfig {
    /// The id of the configuration. Every change assigns a new id.
    pub online_scoring_config_id: String,
    /// The id of the scorer.
    pub scorer_id: String,
    /// The share of the traces that are scored, from 0 to 1.
    pub sample_rate: f64,
    /// The id of the experiment.
    pub experiment_id: String,
    /// A filter of the traces to score. If it is missing, all traces are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_string: Option<String>,
}

/// The response of `scorers/online-config`, which no protobuf message describes.
#[derive(Serialize)]
pub struct OnlineConfigResponse {
    /// The configuration.
    pub config: OnlineScoringConfig,
}

/// The response of `scorers/online-configs`, which no protobuf message describes.
#[derive(Serialize)]
pub struct OnlineConfigsResponse {
    /// The configurations.
    pub configs: Vec<OnlineScoringConfig>,
}
