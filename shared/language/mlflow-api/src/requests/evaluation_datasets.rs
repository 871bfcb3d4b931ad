//! Requests about evaluation datasets. The dataset is the one that the path names, whatever the body says.

use crate::messages;

messages! {
    /// `datasets/create`
    CreateDataset {
        name: String [Required, Text],
        experiment_ids: Vec<String> [List],
        tags: String [Text],
        source: String,
        schema: String,
        profile: String,
        created_by: String,
    }
    /// `datasets/search`
    SearchEvaluationDatasets {
        experiment_ids: Vec<String> [List],
        filter_string: String [Text],
        max_results: Option<i32> [Integer],
        order_by: Vec<String> [List],
        page_token: String [Text],
    }
    /// `datasets/{dataset_id}/tags`
    SetDatasetTags {
        tags: String [Required, Text],
        dataset_id: String,
    }
    /// `POST datasets/{dataset_id}/records`
    UpsertDatasetRecords {
        records: String [Required, Text],
        dataset_id: String,
        updated_by: String,
    }
    /// `GET datasets/{dataset_id}/records`
    GetDatasetRecords {
        max_results: i32 [Integer],
        page_token: String [Text],
        dataset_id: String,
    }
    /// `DELETE datasets/{dataset_id}/records`
    DeleteDatasetRecords {
        dataset_record_ids: Vec<String> [List],
        dataset_id: String,
    }
    /// `datasets/{dataset_id}/add-experiments`, `remove-experiments`
    DatasetExperimentIds {
        experiment_ids: Vec<String> [List],
        dataset_id: String,
    }
}
