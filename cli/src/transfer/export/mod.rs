//! `mlflow-serverless export`: writes a SQLite database with MLflow's own schema.

mod context;
mod options;

pub(crate) use context::ExportContext;
pub(crate) use options::Options;

use crate::Failure;
use crate::transfer::{
    evaluation_datasets, experiments, logged_models, mcp_servers, registered_models, reviews, runs, scorers, skills,
    traces, webhooks, workspaces,
};

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let context = options.open().await?;
    workspaces::export(&context).await?;
    for experiment in experiments::export(&context).await? {
        Box::pin(runs::export(&context, &experiment)).await?;
        logged_models::export(&context, &experiment).await?;
        traces::export(&context, &experiment).await?;
        Box::pin(scorers::export(&context, &experiment)).await?;
        Box::pin(reviews::export(&context, &experiment)).await?;
    }
    registered_models::export(&context).await?;
    Box::pin(mcp_servers::export(&context)).await?;
    Box::pin(skills::export(&context)).await?;
    webhooks::export(&context).await?;
    Box::pin(evaluation_datasets::export(&context)).await?;
    context.finish()
}
