//! Requests about logged models.

use crate::key_value::KeyValue;
use crate::logged_models::ModelStatus;
use crate::messages;

messages! {
    /// The request message of `POST logged-models`.
    CreateLoggedModel {
        experiment_id: String [Text, Required],
        name: String [Text],
        model_type: String [Text],
        source_run_id: String [Text],
        params: Vec<KeyValue> [List],
        tags: Vec<KeyValue> [List],
    }
    /// The request message of `PATCH logged-models/{model_id}`.
    FinalizeLoggedModel {
        model_id: String [Text, Required],
        status: Option<ModelStatus> [Integer, Required],
    }
    /// The request message of `POST logged-models/{model_id}/params`.
    LogModelParams {
        model_id: String [Text, Required],
        params: Vec<KeyValue> [List],
    }
    /// The request message of `PATCH logged-models/{model_id}/tags`.
    SetModelTags {
        tags: Vec<KeyValue> [List],
        model_id: String,
    }
    /// A dataset in a search. Only metrics that were measured on it are considered.
    MetricsDataset {
        dataset_name: String,
        dataset_digest: String,
    }
    /// A term of the order of a search.
    ModelOrderClause {
        field_name: String,
        ascending: Option<bool>,
        dataset_name: String,
        dataset_digest: String,
    }
    /// The request message of `POST logged-models/search`.
    SearchLoggedModels {
        experiment_ids: Vec<String> [List, TextItems, Required],
        filter: String [Text],
        datasets: Vec<MetricsDataset> [List],
        max_results: Option<i32> [Integer],
        order_by: Vec<ModelOrderClause> [List],
        page_token: String [Text],
    }
    /// The request message of `GET logged-models/{model_id}/artifacts/directories`.
    ListModelArtifacts {
        artifact_directory_path: String [Text],
        model_id: String,
        page_token: String,
    }
}
