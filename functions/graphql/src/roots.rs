//! Which endpoint answers a root of the schema.

/// Roots and their endpoints, method and canonical path as in the route tables. A store is not made without one of them.
pub(crate) const ROOTS: [(&str, &str); 7] = [
    ("mlflowGetExperiment", "GET /api/2.0/mlflow/experiments/get"),
    ("mlflowGetMetricHistoryBulkInterval", "GET /api/2.0/mlflow/metrics/get-history-bulk-interval"),
    ("mlflowGetRun", "GET /api/2.0/mlflow/runs/get"),
    ("mlflowListArtifacts", "GET /api/2.0/mlflow/artifacts/list"),
    ("mlflowSearchDatasets", "POST /ajax-api/2.0/mlflow/experiments/search-datasets"),
    ("mlflowSearchModelVersions", "GET /api/2.0/mlflow/model-versions/search"),
    ("mlflowSearchRuns", "POST /api/2.0/mlflow/runs/search"),
];

/// The endpoint of a root.
pub(crate) fn endpoint(root: &str) -> Option<&'static str> {
    ROOTS.iter().find(|(name, _)| *name == root).map(|(_, endpoint)| *endpoint)
}
