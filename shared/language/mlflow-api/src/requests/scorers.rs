//! Requests about scorers.

use crate::messages;

messages! {
    /// `scorers/register`
    RegisterScorer {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
        serialized_scorer: String [Required, Text],
    }
    /// `scorers/list`. An empty list of experiments finds nothing, no list finds everything.
    ListScorers {
        experiment_id: String [Text],
        experiment_ids: Option<Vec<String>> [List, TextItems],
    }
    /// `scorers/versions`
    ListScorerVersions {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
    }
    /// `scorers/get`, `delete`
    OneScorerVersion {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
        version: Option<i32> [Integer],
    }
}
