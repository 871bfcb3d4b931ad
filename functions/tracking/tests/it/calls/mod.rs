//! Calls the store in the way that an endpoint does: takes ids, and resolves them in a separate
//! scope for each call. Every caller has all permissions.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::ops::Deref;

use access::{Action, AllowAll, Granted, Identity, Needs, Scope, Target, Visibility};
use entities::{ModelLocation, RunLocation};
use mlflow_api::inputs::{DatasetInput, DatasetSummary, ModelInput};
use mlflow_api::logged_models::{LoggedModel, ModelStatus, SearchLoggedModelsResponse};
use mlflow_api::requests::logged_models::SearchLoggedModels;
use mlflow_api::requests::runs::SearchRuns;
use mlflow_api::tracking::{Experiment, Metric, Run, RunInfo, SearchExperimentsResponse, SearchRunsResponse};
use mlflow_api::{Error, ErrorCode, ExperimentId, ModelId, Result, RunId, Workspace};
use tracking::store::{
    ExperimentSearch, LogBatchData, LoggedMetric, LoggedModelPoint, LoggedModelSearch, ModelLocations, NewExperiment,
    NewLoggedModel, NewRun, RequestedRun, RunChange, RunSearch, SampleRange, Store,
};

/// A point of a logged model's metric, with the model's id.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelPoint {
    pub(crate) model: String,
    pub(crate) key: String,
    pub(crate) value: f64,
    pub(crate) timestamp: i64,
    pub(crate) step: i64,
    pub(crate) run_id: String,
    pub(crate) dataset_name: String,
    pub(crate) dataset_digest: String,
}

/// A store, with methods that take ids.
#[derive(Clone)]
pub(crate) struct Calls(pub(crate) Store);

impl Deref for Calls {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0
    }
}

impl Calls {
    pub(crate) async fn scope(&self, targets: impl IntoIterator<Item = Target>) -> Result<Scope> {
        let table = service::DomainStore::table(&self.0);
        let needs = Needs::of(Action::List, targets);
        Scope::enter(&AllowAll::shared(), Identity::anonymous(), table, &needs).await
    }

    pub(crate) async fn run(&self, run: &str) -> Result<Granted<RunLocation>> {
        let run = RunId::named(run)?;
        self.scope([Target::Run(run.clone())]).await?.run(&run)
    }

    pub(crate) async fn logged_model(&self, model: &str) -> Result<Granted<ModelLocation>> {
        let model = ModelId::named(model)?;
        self.scope([Target::LoggedModel(model.clone())]).await?.logged_model(&model)
    }

    pub(crate) async fn experiment(&self, experiment: ExperimentId) -> Result<Granted<ExperimentId>> {
        self.scope([Target::Experiment(experiment)]).await?.experiment(experiment)
    }

    async fn models(&self, metrics: &[LoggedMetric]) -> Result<ModelLocations> {
        let ids: Vec<_> = metrics.iter().filter_map(|metric| Some(metric.model.as_ref()?.model.clone())).collect();
        let scope = self.scope(ids.iter().cloned().map(Target::LoggedModel)).await?;
        ids.into_iter().map(|id| Ok((id.clone(), scope.logged_model(&id)?))).collect()
    }

    async fn asked(&self, run: &str) -> Result<RequestedRun> {
        let at = match RunId::parse(run) {
            Some(id) => self.scope([Target::Run(id.clone())]).await?.known_run(&id)?,
            None => None,
        };
        Ok((run.to_owned(), at))
    }

    pub(crate) async fn run_create(&self, experiment: ExperimentId, new: &NewRun) -> Result<Run> {
        self.0.run_create(&self.experiment(experiment).await?, new).await
    }

    pub(crate) async fn run_get(&self, run: &str) -> Result<Run> {
        self.0.run_get(&self.run(run).await?).await
    }

    pub(crate) async fn run_update(&self, run: &str, change: &RunChange) -> Result<RunInfo> {
        self.0.run_update(&self.run(run).await?, change).await
    }

    pub(crate) async fn run_delete(&self, run: &str) -> Result<()> {
        self.0.run_delete(&self.run(run).await?).await
    }

    pub(crate) async fn run_restore(&self, run: &str) -> Result<()> {
        self.0.run_restore(&self.run(run).await?).await
    }

    pub(crate) async fn run_search(&self, asked: &SearchRuns) -> Result<SearchRunsResponse> {
        let search = RunSearch::read(asked)?;
        let scope = self.scope(search.experiments.iter().copied().map(Target::Experiment)).await?;
        self.0.run_search(&scope.listed_experiments(&search.experiments)?, search).await
    }

    pub(crate) async fn run_log_metric(&self, run: &str, metric: &LoggedMetric) -> Result<()> {
        let models = self.models(std::slice::from_ref(metric)).await?;
        self.0.run_log_metric(&self.run(run).await?, metric, &models).await
    }

    pub(crate) async fn run_log_batch(&self, run: &str, batch: &LogBatchData) -> Result<()> {
        let models = self.models(&batch.metrics).await?;
        self.0.run_log_batch(&self.run(run).await?, batch.clone(), &models).await
    }

    pub(crate) async fn run_log_param(&self, run: &str, key: &str, value: &str) -> Result<()> {
        self.0.run_log_param(&self.run(run).await?, key, value.to_owned()).await
    }

    pub(crate) async fn run_set_tag(&self, run: &str, key: &str, value: &str) -> Result<()> {
        self.0.run_set_tag(&self.run(run).await?, key, value.to_owned()).await
    }

    pub(crate) async fn run_delete_tag(&self, run: &str, key: &str) -> Result<()> {
        self.0.run_delete_tag(&self.run(run).await?, key).await
    }

    pub(crate) async fn run_log_inputs(
        &self,
        run: &str,
        datasets: &[DatasetInput],
        models: &[ModelInput],
    ) -> Result<()> {
        self.0.run_log_inputs(&self.run(run).await?, datasets, models).await
    }

    pub(crate) async fn metric_history(
        &self,
        run: &str,
        metric: &str,
        max_results: Option<usize>,
        page_token: &str,
    ) -> Result<(Vec<Metric>, Option<String>)> {
        self.0.metric_history(&self.asked(run).await?, metric, max_results.unwrap_or(usize::MAX), page_token).await
    }

    pub(crate) async fn metric_history_sample(
        &self,
        runs: Vec<String>,
        metric: &str,
        range: Option<SampleRange>,
        max_results: usize,
    ) -> Result<Vec<Metric>> {
        let mut asked = Vec::new();
        for run in runs {
            asked.push(self.asked(&run).await?);
        }
        self.0.metric_history_sample(asked, metric, range, max_results).await
    }

    pub(crate) async fn logged_model_log_metrics(&self, points: &[ModelPoint]) -> Result<()> {
        let mut metrics = Vec::new();
        for point in points {
            let ModelPoint { model, key, value, timestamp, step, run_id, dataset_name, dataset_digest } = point.clone();
            // Like the endpoint, reports a missing model as `BAD_REQUEST`.
            let model = self.logged_model(&model).await;
            let model = model.map_err(|error| Error::new(ErrorCode::BadRequest, error.message))?;
            metrics.push(LoggedModelPoint { model, key, value, timestamp, step, run_id, dataset_name, dataset_digest });
        }
        self.0.logged_model_log_metrics(&metrics).await
    }

    pub(crate) async fn experiment_create(&self, new: &NewExperiment) -> Result<ExperimentId> {
        self.0.experiment_create(&Workspace::default(), new).await
    }

    pub(crate) async fn experiment_get(&self, id: ExperimentId) -> Result<Experiment> {
        self.0.experiment_get(&Workspace::default(), &self.experiment(id).await?).await
    }

    pub(crate) async fn experiment_get_by_name(&self, name: &str) -> Result<Option<Experiment>> {
        let scope = self.scope([Target::ExperimentNamed(name.to_owned())]).await?;
        match scope.experiment_named(name)? {
            Some(id) => self.0.experiment_get(scope.workspace(), &id).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn experiment_search(&self, search: &ExperimentSearch) -> Result<SearchExperimentsResponse> {
        self.0.experiment_search(&Workspace::default(), &Visibility::Everything, search).await
    }

    pub(crate) async fn experiment_rename(&self, id: ExperimentId, name: &str) -> Result<()> {
        self.0.experiment_rename(&Workspace::default(), &self.experiment(id).await?, name).await
    }

    pub(crate) async fn experiment_delete(&self, id: ExperimentId) -> Result<()> {
        self.0.experiment_delete(&Workspace::default(), &self.experiment(id).await?).await
    }

    pub(crate) async fn experiment_restore(&self, id: ExperimentId) -> Result<()> {
        self.0.experiment_restore(&Workspace::default(), &self.experiment(id).await?).await
    }

    pub(crate) async fn experiment_set_tag(&self, id: ExperimentId, key: &str, value: &str) -> Result<()> {
        self.0.experiment_set_tag(&Workspace::default(), &self.experiment(id).await?, key, value).await
    }

    pub(crate) async fn run_datasets_search(&self, ids: &[ExperimentId]) -> Result<Vec<DatasetSummary>> {
        let scope = self.scope(ids.iter().copied().map(Target::Experiment)).await?;
        self.0.run_datasets_search(&scope.listed_experiments(ids)?).await
    }

    pub(crate) async fn logged_model_create(&self, id: ExperimentId, new: &NewLoggedModel) -> Result<LoggedModel> {
        self.0.logged_model_create(&self.experiment(id).await?, new).await
    }

    pub(crate) async fn logged_model_get(&self, model: &str, allow_deleted: bool) -> Result<LoggedModel> {
        self.0.logged_model_get(&self.logged_model(model).await?, allow_deleted).await
    }

    pub(crate) async fn logged_model_finalize(&self, model: &str, status: ModelStatus) -> Result<LoggedModel> {
        self.0.logged_model_finalize(&self.logged_model(model).await?, status).await
    }

    pub(crate) async fn logged_model_delete(&self, model: &str) -> Result<()> {
        self.0.logged_model_delete(&self.logged_model(model).await?).await
    }

    pub(crate) async fn logged_model_log_params(&self, model: &str, params: Vec<(String, String)>) -> Result<()> {
        self.0.logged_model_log_params(&self.logged_model(model).await?, params).await
    }

    pub(crate) async fn logged_model_set_tags(&self, model: &str, tags: Vec<(String, String)>) -> Result<()> {
        self.0.logged_model_set_tags(&self.logged_model(model).await?, tags).await
    }

    pub(crate) async fn logged_model_search(&self, asked: SearchLoggedModels) -> Result<SearchLoggedModelsResponse> {
        let search = LoggedModelSearch::read(asked)?;
        let scope = self.scope(search.experiments.iter().copied().map(Target::Experiment)).await?;
        self.0.logged_model_search(&scope.listed_experiments(&search.experiments)?, search).await
    }
}
