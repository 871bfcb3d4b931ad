//! Requests about experiments.

use crate::ExperimentId;
use crate::key_value::KeyValue;
use crate::messages;
use crate::tracking::ViewType;

messages! {
    /// `experiments/create`
    CreateExperiment {
        name: String [Required, Text],
        artifact_location: String [Text],
        tags: Vec<KeyValue> [List],
    }
    /// `experiments/get`, `delete`, `restore`
    ExperimentById {
        experiment_id: ExperimentId [Required, Text],
    }
    /// `experiments/get-by-name`
    GetExperimentByName {
        experiment_name: String [Required, Text],
    }
    /// `experiments/search`
    SearchExperiments {
        view_type: Option<ViewType> [Integer],
        max_results: i64 [Integer],
        order_by: Vec<String> [List],
        filter: String [Text],
        page_token: String [Text],
    } arguments [max_results, page_token, filter, order_by, view_type]
    /// `experiments/update`
    UpdateExperiment {
        experiment_id: String [Required, Text],
        new_name: String [Text, Required],
    }
    /// `experiments/set-experiment-tag`
    SetExperimentTag {
        experiment_id: String [Required, Text],
        key: String [Required, Text],
        value: String [Text],
    }
    /// `experiments/delete-experiment-tag`
    DeleteExperimentTag {
        experiment_id: String [Required, Text],
        key: String [Required, Text],
    }
    /// `experiments/search-datasets`
    SearchDatasets {
        experiment_ids: Vec<String>,
    }
}
