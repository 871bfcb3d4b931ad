//! Entities that this server does not support yet. They are counted and reported.

use super::context::{ImportContext, ImportScope};
use crate::Failure;
use crate::transfer::database::SqlValue;

/// Tables that an import reads, or that have nothing to import: derived data, locks and versions.
const READ: [&str; 67] = [
    "alembic_version",
    "alembic_version_auth",
    "assessments",
    "datasets",
    "entity_associations",
    "evaluation_dataset_records",
    "evaluation_dataset_tags",
    "evaluation_datasets",
    "experiment_tags",
    "experiments",
    "input_tags",
    "inputs",
    "issue_categories",
    "issues",
    "job_locks",
    "label_schemas",
    "latest_metrics",
    "logged_model_metrics",
    "logged_model_params",
    "logged_model_tags",
    "logged_models",
    "mcp_access_endpoints",
    "mcp_server_aliases",
    "mcp_server_tags",
    "mcp_server_version_tags",
    "mcp_server_versions",
    "mcp_servers",
    "metrics",
    "model_version_tags",
    "model_versions",
    "online_scoring_configs",
    "params",
    "registered_model_aliases",
    "registered_model_tags",
    "registered_models",
    "review_queue_items",
    "review_queue_label_schemas",
    "review_queue_users",
    "review_queues",
    "runs",
    "scheduler_leases",
    "scorer_versions",
    "scorers",
    "skill_aliases",
    "skill_tags",
    "skill_version_tags",
    "skill_versions",
    "skills",
    "span_metrics",
    "spans",
    "sql_assessment_daily_rollups",
    "sql_span_cost_daily_rollups",
    "sql_trace_metric_daily_rollups",
    "sql_trace_rollup_rebuild_queue",
    "tags",
    "trace_info",
    "trace_metrics",
    "trace_request_metadata",
    "trace_tags",
    "webhook_events",
    "webhooks",
    "workspaces",
    // Records the progress of `mlflow-serverless-dump`.
    "mlflow_serverless_dump",
    // MLflow's own database of users may be in the same database. `--users-from` reads it.
    "users",
    "roles",
    "role_permissions",
    "user_role_assignments",
];

/// Tables that contain parts of entities of another table, which is counted instead.
const PARTS: [&str; 11] = [
    "endpoint_model_mappings",
    "endpoint_bindings",
    "endpoint_tags",
    "guardrail_configs",
    // Earlier schemas store the grants of users in these tables. Later ones store them in roles.
    "experiment_permissions",
    "registered_model_permissions",
    "scorer_permissions",
    "gateway_secret_permissions",
    "gateway_endpoint_permissions",
    "gateway_model_definition_permissions",
    "workspace_permissions",
];

/// Names of entities in reports, by table. A table that is not in the list is reported by its own
/// name.
const NAMES: [(&str, &str); 6] = [
    ("budget_policies", "budget policies of the AI gateway"),
    ("endpoints", "endpoints of the AI gateway"),
    ("guardrails", "guardrails of the AI gateway"),
    ("jobs", "jobs"),
    ("model_definitions", "model definitions of the AI gateway"),
    ("secrets", "secrets of the AI gateway"),
];

/// Reports the rows in the context's scope of all tables that no module reads. Takes one query per
/// table.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn report(context: &ImportContext) -> Result<(), Failure> {
    for table in context.source.tables() {
        if READ.contains(&table) || PARTS.contains(&table) || table.starts_with("sqlite_") {
            continue;
        }
        let count = count(context, table).await?;
        if count > 0 {
            let name = NAMES.iter().find(|(known, _)| *known == table).map_or(table, |(_, name)| *name);
            context.report.unsupported(name, count);
        }
    }
    Ok(())
}

/// Returns the number of rows of a table that belong to the scope. For the scope of an experiment
/// or a workspace, returns 0 if the table has no column that shows which rows belong to it.
async fn count(context: &ImportContext, table: &str) -> Result<u64, Failure> {
    let (condition, argument) = match &context.scope {
        ImportScope::All => return context.source.count(table).await,
        ImportScope::Experiment(experiment) if context.source.has_column(table, "experiment_id") => {
            ("experiment_id = ?", SqlValue::Integer(i64::try_from(experiment.number())?))
        }
        ImportScope::Workspace(workspace) if context.source.has_column(table, "workspace") => {
            ("workspace = ?", workspace.as_str().into())
        }
        ImportScope::Workspace(workspace)
            if ["experiments", table].iter().all(|table| context.source.has_column(table, "experiment_id"))
                && context.source.has_column("experiments", "workspace") =>
        {
            ("experiment_id IN (SELECT experiment_id FROM experiments WHERE workspace = ?)", workspace.as_str().into())
        }
        _ => return Ok(0),
    };
    let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
    let rows = context.source.rows(&sql, vec![argument]).await?;
    Ok(rows.first().map(|row| row.integer(0)).transpose()?.unwrap_or_default().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of MLflow's newest schema, which `export` creates.
    fn tables() -> Vec<&'static str> {
        let schemas = [include_str!("../export/schema.sql"), include_str!("../export/schema_3_18.sql")];
        let names = schemas.into_iter().flat_map(str::lines).filter_map(|line| line.strip_prefix("CREATE TABLE "));
        names.map(|line| line.trim_end_matches(" (").trim_matches('"')).collect()
    }

    #[test]
    fn every_table_of_the_newest_schema_is_read_or_has_a_name() {
        let tables = tables();
        assert!(tables.len() > 60, "{tables:?}");
        for table in tables {
            let lists = [READ.contains(&table), PARTS.contains(&table), NAMES.iter().any(|(known, _)| *known == table)];
            assert_eq!(lists.iter().filter(|is_in| **is_in).count(), 1, "{table}");
        }
    }
}
