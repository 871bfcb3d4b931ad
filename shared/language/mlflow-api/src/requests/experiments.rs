//! Requests about experiments.

use crate::ExperimentId;
use crate::key_value::KeyValue;
use crate::messages;
use crate::tracking::ViewType;

messages! {
    /// The request message of `experiments/create`.
    CreateExperiment {
        name: String [Required, Text],
        artifact_location: String [Text],
        tags: Vec<KeyValue> [List],
    }
    /// The request message of `experiments/get`, `delete` and `restore`.
    ExperimentById {
        experiment_id: ExperimentId [Required, Text],
    }
    /// The request message of `experiments/get-by-name`.
    GetExperimentByName {
        experiment_name: String [Required, Text],
    }
    /// The request message of `experiments/search`.
    SearchExperiments {
        view_type: Option<ViewType> [Integer],
        max_results: i64 [Integer],
        order_by: Vec<String> [List],
        filter: String [Text],
        page_token: String [Text],
    } arguments [max_results, page_token, filter, order_by, view_type]
    /// The request message of `experiments/update`.
    UpdateExperiment {
        experiment_id: String [Required, Text],
        new_name: String [Text, Required],
    }
    /// The request message of `experiments/set-experiment-tag`.
    SetExperimentTag {
        experiment_id: String [Required, Text],
        key: String [Required, Text],
        value: String [Text],
    }
    /// The request message of `experiments/delete-experiment-tag`.
    DeleteExperimentTag {
        experiment_id: String [Required, Text],
        key: String [Required, Text],
    }
    /// The request message of `experiments/search-datasets`.
    SearchDatasets {
        experiment_ids: Vec<String>,
    }
}
