//! Messages about evaluation datasets (`CreateDataset` and related messages in `service.proto`,
//! `datasets.proto`).

use serde::Serialize;
use serde_json::value::RawValue;

/// An evaluation dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvaluationDataset {
    /// The id.
    pub dataset_id: String,
    /// The name, which is not unique.
    pub name: String,
    /// The tags, as a JSON object.
    pub tags: String,
    /// The fields of the records, as a JSON object. Omitted before the first record is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The number of records, as a JSON object. Omitted before the first record is added, and
    /// `null` after the last one has been deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// A digest of the dataset. It changes whenever records are merged.
    pub digest: String,
    /// The creation time, in ms.
    pub created_time: i64,
    /// The time of the last change, in ms.
    pub last_update_time: i64,
    /// The user who created the dataset, if its tags contained the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The user whose records were merged last, if the tags of these records contained the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated_by: Option<String>,
    /// The ids of the experiments. Only set in the response to the creation of the dataset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiment_ids: Vec<String>,
}

/// The response of `datasets/create`, `datasets/{dataset_id}`, `add-experiments` and
/// `remove-experiments`.
#[derive(Serialize)]
pub struct DatasetResponse {
    /// The dataset.
    pub dataset: EvaluationDataset,
}

/// The response of `datasets/search`.
#[derive(Serialize)]
pub struct SearchDatasetsResponse {
    /// The items of the page. Each is an [`EvaluationDataset`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<Box<RawValue>>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `POST datasets/{dataset_id}/records`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MergeRecordsResponse {
    /// The number of records that are new.
    pub inserted_count: usize,
    /// The number of records that already existed. A record that occurs twice in a request is
    /// counted twice.
    pub updated_count: usize,
}

/// The response of `GET datasets/{dataset_id}/records`.
#[derive(Clone, Debug, Serialize)]
pub struct DatasetRecordsResponse {
    /// The page, as a JSON string that contains a JSON array.
    pub records: Box<RawValue>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The response of `DELETE datasets/{dataset_id}/records`.
#[derive(Serialize)]
pub struct DeleteRecordsResponse {
    /// The number of records that were deleted.
    pub deleted_count: usize,
}

/// The response of `datasets/{dataset_id}/experiment-ids`.
#[derive(Serialize)]
pub struct DatasetExperimentsResponse {
    /// The ids of the experiments, in the order in which they were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiment_ids: Vec<String>,
}
