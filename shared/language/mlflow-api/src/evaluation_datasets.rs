//! Messages about evaluation datasets (`CreateDataset` and its neighbours in `service.proto`, `datasets.proto`).

use serde::Serialize;
use serde_json::value::RawValue;

/// An evaluation dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvaluationDataset {
    /// Id.
    pub dataset_id: String,
    /// Name; several may have the same.
    pub name: String,
    /// Tags, a JSON object.
    pub tags: String,
    /// The fields of its records, a JSON object; left out before the first record.
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
    /// The page, each an [`EvaluationDataset`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<Box<RawValue>>,
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
#[derive(Clone, Debug, Serialize)]
pub struct DatasetRecords {
    /// The page: a text that holds a JSON array.
    pub records: Box<RawValue>,
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
