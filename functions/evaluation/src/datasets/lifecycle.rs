//! Creating, reading, searching and deleting datasets, and their tags.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::evaluation_datasets::{DatasetResponse, SearchDatasetsResponse};
use mlflow_api::requests::evaluation_datasets as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, ExperimentId, Json, Request, Result, limits};
use service::Endpoint;

use crate::request_targets::DatasetTarget;
use crate::store::{DatasetSearch, NewDataset, Store, column};

/// Page size for requests without `max_results` (`SearchEvaluationDatasets` in `service.proto`).
const DEFAULT_PAGE: i64 = 1_000;
/// The tag that contains the name of the user who created a dataset.
const USER_TAG: &str = "mlflow.user";

/// Returns the valid experiment ids among a client's texts. MLflow does not check whether the
/// experiments exist.
pub(super) fn experiments(texts: &[String]) -> impl Iterator<Item = ExperimentId> {
    texts.iter().filter_map(|text| ExperimentId::parse(text).ok())
}

/// Rejects ids of experiments in another workspace. Ids of experiments that do not exist at all are
/// allowed.
pub(super) fn check_workspace(scope: &Scope, texts: &[String]) -> Result<()> {
    experiments(texts).try_for_each(|experiment| scope.experiment(experiment).map(drop))
}

/// Parses the JSON in a text field.
pub(super) fn json(field: &str, text: &str) -> Result<Json> {
    Json::of(&format!("The value of '{field}'"), text)
}

pub(crate) struct Create(NewDataset);

impl Endpoint for Create {
    type Store = Store;
    type Answer = DatasetResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateDataset = request.read()?;
        let mut new =
            NewDataset { name: message.name, experiment_ids: message.experiment_ids, ..NewDataset::default() };
        let tags = match message.tags.as_str() {
            "" => Json::Null,
            text => json("tags", text)?,
        };
        match tags {
            Json::Object(tags) => {
                for (key, value) in tags {
                    let Some(value) = column(&key, &value)? else { continue };
                    if key == USER_TAG {
                        new.user = Some(value.clone());
                    }
                    new.tags.push((key, value));
                }
            }
            // Empty values of other types are falsy in Python, so MLflow treats them as no tags.
            other if !other.is_true() => {}
            other => {
                let message = format!("The value of 'tags' must be a JSON object, got {}.", other.type_name());
                return Err(Error::invalid(message));
            }
        }
        Ok(Self(new))
    }

    /// Creating a dataset requires permission on the experiments that will list it, or on the whole
    /// workspace if the request names no experiments.
    fn needs(&self) -> Needs {
        let experiments = experiments(&self.0.experiment_ids).map(Target::Experiment);
        Needs::nothing()
            .and_in(Action::Create, Resource::EvaluationDataset, experiments)
            .or(Needs::create(Resource::EvaluationDataset))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DatasetResponse> {
        check_workspace(scope, &self.0.experiment_ids)?;
        Ok(DatasetResponse { dataset: store.dataset_create(scope.workspace(), &self.0).await? })
    }
}

pub(crate) struct Get(DatasetTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = DatasetResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(DatasetTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Read, self.0.targets())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DatasetResponse> {
        Ok(DatasetResponse { dataset: store.dataset_get(&self.0.granted(scope)?).await? })
    }
}

pub(crate) struct Delete(DatasetTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(DatasetTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Delete, self.0.targets())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.dataset_delete(scope.workspace(), &self.0.granted(scope)?).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Search {
    experiments: Vec<ExperimentId>,
    search: DatasetSearch,
}

impl Endpoint for Search {
    type Store = Store;
    type Answer = SearchDatasetsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::SearchEvaluationDatasets = request.read()?;
        let max_results = message.max_results.map_or(DEFAULT_PAGE, i64::from);
        if max_results == 0 {
            // MLflow replaces 0 by `None`, because 0 is falsy in Python, and then reports that
            // `None` is not a number.
            let message = "Invalid value None for parameter 'max_results' supplied. It must be a positive integer";
            return Err(Error::invalid(message));
        }
        limits::searched_experiments(message.experiment_ids.len())?;
        let search = DatasetSearch {
            experiment_ids: message.experiment_ids,
            filter: message.filter_string,
            order_by: message.order_by,
            max_results,
            page_token: message.page_token,
        };
        Ok(Self { experiments: experiments(&search.experiment_ids).collect(), search })
    }

    /// A request without experiments searches the datasets of all experiments. If the request
    /// contains texts that are not experiment IDs, it requires permission to read all experiments.
    fn needs(&self) -> Needs {
        let experiments = self.experiments.iter().copied().map(Target::Experiment);
        Needs::nothing()
            .and_in(Action::Read, Resource::EvaluationDataset, experiments)
            .or(Needs::read(Target::Any(Resource::EvaluationDataset)))
            .showing([Resource::EvaluationDataset])
    }

    async fn act(mut self, scope: &Scope, store: &Store) -> Result<SearchDatasetsResponse> {
        let named = &mut self.search.experiment_ids;
        let is_here = |text: &String| match ExperimentId::parse(text) {
            Ok(experiment) => Ok(scope.listed_experiment(experiment)?.is_some()),
            Err(_) => Ok(scope.shows(Resource::EvaluationDataset)),
        };
        let here = named.iter().map(is_here).collect::<Result<Vec<_>>>()?;
        if !here.is_empty() && here.iter().all(|is_here| !is_here) {
            return Ok(SearchDatasetsResponse { datasets: Vec::new(), next_page_token: None });
        }
        let mut here = here.into_iter();
        named.retain(|_| here.next().unwrap_or_default());
        store.dataset_search(scope.workspace(), &self.search).await
    }
}

pub(crate) struct SetTags {
    dataset: DatasetTarget,
    tags: Json,
}

impl Endpoint for SetTags {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::SetDatasetTags = request.read()?;
        Ok(Self { dataset: DatasetTarget::of(request), tags: json("tags", &message.tags)? })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Update, self.dataset.targets())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.dataset_set_tags(&self.dataset.granted(scope)?, self.tags).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    dataset: DatasetTarget,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { dataset: DatasetTarget::of(request), key: request.path_part("key").to_owned() })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Update, self.dataset.targets())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.dataset_delete_tag(&self.dataset.granted(scope)?, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
