//! Messages about scorers (`RegisterScorer` and its neighbours in `service.proto`).

use serde::Serialize;

/// A version of a scorer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scorer {
    /// A number here, a text elsewhere.
    pub experiment_id: u64,
    /// Name.
    pub scorer_name: String,
    /// From 1.
    pub scorer_version: u32,
    /// The scorer, a JSON object.
    pub serialized_scorer: String,
    /// In ms.
    pub creation_time: i64,
    /// Id, of all versions.
    pub scorer_id: String,
}

/// `scorers/register`
#[derive(Serialize)]
pub struct RegisteredScorer {
    /// From 1.
    pub version: u32,
    /// Id, of all versions.
    pub scorer_id: String,
    /// Experiment.
    pub experiment_id: String,
    /// Name.
    pub name: String,
    /// The scorer, a JSON object.
    pub serialized_scorer: String,
    /// In ms.
    pub creation_time: i64,
}

/// `scorers/get`
#[derive(Serialize)]
pub struct OneScorer {
    /// The version.
    pub scorer: Scorer,
}

/// `scorers/list`, `versions`
#[derive(Serialize)]
pub struct Scorers {
    /// The versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scorers: Vec<Scorer>,
}

/// On which traces a scorer runs by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnlineScoringConfig {
    /// Another one with every change.
    pub online_scoring_config_id: String,
    /// Scorer.
    pub scorer_id: String,
    /// Share of the traces, from 0 to 1.
    pub sample_rate: f64,
    /// Experiment.
    pub experiment_id: String,
    /// Which traces; all, where it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_string: Option<String>,
}

/// `scorers/online-config`, which no protobuf message describes.
#[derive(Serialize)]
pub struct OneOnlineConfig {
    /// The configuration.
    pub config: OnlineScoringConfig,
}

/// `scorers/online-configs`, likewise.
#[derive(Serialize)]
pub struct OnlineConfigs {
    /// The configurations.
    pub configs: Vec<OnlineScoringConfig>,
}
