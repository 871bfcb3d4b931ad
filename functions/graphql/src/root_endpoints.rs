//! Maps root fields of the schema to endpoints.

/// Root fields and their endpoints, with method and canonical path as in the route tables.
/// [`Store::new`](crate::store::Store::new) fails if an endpoint is missing.
pub(crate) const ROOTS: [(&str, &str); 7] = [
    ("mlflowGetExperiment", "GET /api/2.0/mlflow/experiments/get"),
    ("mlflowGetMetricHistoryBulkInterval", "GET /api/2.0/mlflow/metrics/get-history-bulk-interval"),
    ("mlflowGetRun", "GET /api/2.0/mlflow/runs/get"),
    ("mlflowListArtifacts", "GET /api/2.0/mlflow/artifacts/list"),
    ("mlflowSearchDatasets", "POST /ajax-api/2.0/mlflow/experiments/search-datasets"),
    ("mlflowSearchModelVersions", "GET /api/2.0/mlflow/model-versions/search"),
    ("mlflowSearchRuns", "POST /api/2.0/mlflow/runs/search"),
];

/// Returns the endpoint of a root field.
pub(crate) fn endpoint(root: &str) -> Option<&'static str> {
    ROOTS.iter().find(|(name, _)| *name == root).map(|(_, endpoint)| *endpoint)
}
