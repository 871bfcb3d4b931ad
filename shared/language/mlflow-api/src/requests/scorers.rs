//! Requests about scorers.

use crate::messages;

messages! {
    /// The request message of `scorers/register`.
    RegisterScorer {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
        serialized_scorer: String [Required, Text],
    }
    /// The request message of `scorers/list`. If the list of experiments is empty, nothing is
    /// found. If there is no list, the scorers of all experiments are found.
    ListScorers {
        experiment_id: String [Text],
        experiment_ids: Option<Vec<String>> [List, TextItems],
    }
    /// The request message of `scorers/versions`.
    ListScorerVersions {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
    }
    /// The request message of `scorers/get` and `delete`.
    OneScorerVersion {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
        version: Option<i32> [Integer],
    }
}
