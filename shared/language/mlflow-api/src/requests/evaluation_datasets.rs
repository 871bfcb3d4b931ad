//! Requests about evaluation datasets. The dataset is the one in the path, regardless of the id in
//! the body.

use crate::messages;

messages! {
    /// The request message of `datasets/create`.
    CreateDataset {
        name: String [Required, Text],
        experiment_ids: Vec<String> [List],
        tags: String [Text],
        source: String,
        schema: String,
        profile: String,
        created_by: String,
    }
    /// The request message of `datasets/search`.
    SearchEvaluationDatasets {
        experiment_ids: Vec<String> [List],
        filter_string: String [Text],
        max_results: Option<i32> [Integer],
        order_by: Vec<String> [List],
        page_token: String [Text],
    }
    /// The request message of `datasets/{dataset_id}/tags`.
    SetDatasetTags {
        tags: String [Required, Text],
        dataset_id: String,
    }
    /// The request message of `POST datasets/{dataset_id}/records`.
    UpsertDatasetRecords {
        records: String [Required, Text],
        dataset_id: String,
        updated_by: String,
    }
    /// The request message of `GET datasets/{dataset_id}/records`.
    GetDatasetRecords {
        max_results: i32 [Integer],
        page_token: String [Text],
        dataset_id: String,
    }
    /// The request message of `DELETE datasets/{dataset_id}/records`.
    DeleteDatasetRecords {
        dataset_record_ids: Vec<String> [List],
        dataset_id: String,
    }
    /// The request message of `datasets/{dataset_id}/add-experiments` and `remove-experiments`.
    DatasetExperimentIds {
        experiment_ids: Vec<String> [List],
        dataset_id: String,
    }
}
