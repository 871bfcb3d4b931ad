//! Messages about evaluation datasets (`CreateDataset` and its neighbours in `service.proto`, `datasets.proto`).

use serde::Serialize;

use crate::message::{Field, Kind, field, text, texts};

/// `datasets/create`
pub const CREATE_DATASET: &[Field] = &[
    text("name"),
    texts("experiment_ids"),
    text("source"),
    text("schema"),
    text("profile"),
    text("created_by"),
    text("tags"),
];
/// `datasets/search`
pub const SEARCH_DATASETS: &[Field] = &[
    texts("experiment_ids"),
    text("filter_string"),
    field("max_results", Kind::Int32),
    texts("order_by"),
    text("page_token"),
];
/// `datasets/{dataset_id}/tags`
pub const SET_DATASET_TAGS: &[Field] = &[text("dataset_id"), text("tags")];
/// `POST datasets/{dataset_id}/records`
pub const UPSERT_DATASET_RECORDS: &[Field] = &[text("dataset_id"), text("records"), text("updated_by")];
/// `GET datasets/{dataset_id}/records`
pub const GET_DATASET_RECORDS: &[Field] = &[text("dataset_id"), field("max_results", Kind::Int32), text("page_token")];
/// `DELETE datasets/{dataset_id}/records`
pub const DELETE_DATASET_RECORDS: &[Field] = &[text("dataset_id"), texts("dataset_record_ids")];
/// `datasets/{dataset_id}/add-experiments`, `remove-experiments`
pub const DATASET_EXPERIMENTS: &[Field] = &[text("dataset_id"), texts("experiment_ids")];

/// An evaluation dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvaluationDataset {
    /// Id.
    pub dataset_id: String,
    /// Name; several may have the same.
    pub name: String,
    /// Tags, a JSON object.
    pub tags: String,
    /// What fields its records have, a JSON object; left out before the first record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// How many records it has, a JSON object; left out before the first record, `null` after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Changes whenever records are merged.
    pub digest: String,
    /// In ms.
    pub created_time: i64,
    /// In ms.
    pub last_update_time: i64,
    /// The user who created it, if its tags said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The user whose records were merged last, if their tags said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated_by: Option<String>,
    /// Experiments; only in the answer to its creation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiment_ids: Vec<String>,
}

/// `datasets/create`, `datasets/{dataset_id}`, `add-experiments`, `remove-experiments`
#[derive(Serialize)]
pub struct OneDataset {
    /// The dataset.
    pub dataset: EvaluationDataset,
}

/// `datasets/search`
#[derive(Serialize)]
pub struct Datasets {
    /// The page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<EvaluationDataset>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// `POST datasets/{dataset_id}/records`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MergedRecords {
    /// How many records are new.
    pub inserted_count: usize,
    /// How many were there already; one that comes twice in a request counts twice.
    pub updated_count: usize,
}

/// `GET datasets/{dataset_id}/records`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatasetRecords {
    /// The page, a JSON array.
    pub records: String,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// `DELETE datasets/{dataset_id}/records`
#[derive(Serialize)]
pub struct DeletedRecords {
    /// How many there were.
    pub deleted_count: usize,
}

/// `datasets/{dataset_id}/experiment-ids`
#[derive(Serialize)]
pub struct DatasetExperiments {
    /// The experiments, in the order in which they were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiment_ids: Vec<String>,
}
