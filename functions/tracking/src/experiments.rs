//! Handlers of `experiments/…`.

use mlflow_api::checks::Check::{Integer, List, Required, Text};
use mlflow_api::inputs::{DatasetSummaries, SEARCH_DATASETS};
use mlflow_api::message::Message;
use mlflow_api::tracking::{
    self as wire, CUSTOM_VIEW_TAG_PREFIX, CreatedExperiment, Empty, Experiments, OneExperiment, ViewType,
};
use mlflow_api::{Error, ExperimentId, Request, Result, limits, location};

use crate::store::{ExperimentSearch, NewExperiment, Store, known_experiments, too_many_custom_views};

pub(crate) async fn create(store: Store, request: Request) -> Result<CreatedExperiment> {
    let message = request.message(
        wire::CREATE_EXPERIMENT,
        &[("name", &[Required, Text]), ("artifact_location", &[Text]), ("tags", &[List])],
    )?;
    let tags = message.key_values("tags");
    if tags.iter().filter(|(key, _)| key.starts_with(CUSTOM_VIEW_TAG_PREFIX)).count() > limits::CUSTOM_VIEWS {
        return Err(too_many_custom_views(""));
    }
    let artifact_location = message.text("artifact_location").to_owned();
    if !artifact_location.is_empty() {
        location::check(&artifact_location, store.artifact_root())?;
    }
    let new = NewExperiment { name: message.text("name").to_owned(), artifact_location, tags };
    let id = store.experiment_create(&new).await?;
    Ok(CreatedExperiment { experiment_id: id.to_string() })
}

pub(crate) async fn get(store: Store, request: Request) -> Result<OneExperiment> {
    let message = request.message(wire::EXPERIMENT_ID, &[("experiment_id", &[Required, Text])])?;
    let experiment = store.experiment_get(ExperimentId::parse(message.text("experiment_id"))?).await?;
    Ok(OneExperiment { experiment })
}

pub(crate) async fn get_by_name(store: Store, request: Request) -> Result<OneExperiment> {
    let message = request.message(wire::GET_EXPERIMENT_BY_NAME, &[("experiment_name", &[Required, Text])])?;
    let name = message.text("experiment_name");
    let experiment = store.experiment_get_by_name(name).await?;
    let experiment =
        experiment.ok_or_else(|| Error::not_found(format!("Could not find experiment with name '{name}'")))?;
    Ok(OneExperiment { experiment })
}

pub(crate) async fn search(store: Store, request: Request) -> Result<Experiments> {
    let message = request.message(
        wire::SEARCH_EXPERIMENTS,
        &[
            ("view_type", &[Integer]),
            ("max_results", &[Integer]),
            ("order_by", &[List]),
            ("filter", &[Text]),
            ("page_token", &[Text]),
        ],
    )?;
    let search = ExperimentSearch {
        view: view(&message, "view_type"),
        filter: message.text("filter").to_owned(),
        order_by: message.texts("order_by"),
        max_results: message.int("max_results"),
        page_token: message.text("page_token").to_owned(),
    };
    store.experiment_search(&search).await
}

pub(crate) async fn search_datasets(store: Store, request: Request) -> Result<DatasetSummaries> {
    let message = request.message(SEARCH_DATASETS, &[])?;
    let ids = message.texts("experiment_ids");
    if ids.is_empty() {
        return Err(Error::invalid("SearchDatasets request must specify at least one experiment_id."));
    }
    if ids.len() > limits::DATASET_EXPERIMENTS {
        return Err(Error::invalid(format!(
            "SearchDatasets request cannot specify more than {} experiment_ids. Received {} experiment_ids.",
            limits::DATASET_EXPERIMENTS,
            ids.len()
        )));
    }
    let dataset_summaries = store.run_datasets_search(&known_experiments(&ids)?).await?;
    Ok(DatasetSummaries { dataset_summaries })
}

pub(crate) async fn update(store: Store, request: Request) -> Result<Empty> {
    let message = request
        .message(wire::UPDATE_EXPERIMENT, &[("experiment_id", &[Required, Text]), ("new_name", &[Text, Required])])?;
    let new_name = message.text("new_name");
    if !new_name.is_empty() {
        limits::experiment_name(new_name)?;
        store.experiment_rename(ExperimentId::parse(message.text("experiment_id"))?, new_name).await?;
    }
    Ok(Empty {})
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::EXPERIMENT_ID, &[("experiment_id", &[Required, Text])])?;
    store.experiment_delete(ExperimentId::parse(message.text("experiment_id"))?).await?;
    Ok(Empty {})
}

pub(crate) async fn restore(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::EXPERIMENT_ID, &[("experiment_id", &[Required, Text])])?;
    store.experiment_restore(ExperimentId::parse(message.text("experiment_id"))?).await?;
    Ok(Empty {})
}

pub(crate) async fn set_tag(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(
        wire::SET_EXPERIMENT_TAG,
        &[("experiment_id", &[Required, Text]), ("key", &[Required, Text]), ("value", &[Text])],
    )?;
    let (key, value) = (message.text("key"), message.text("value"));
    if !key.starts_with(CUSTOM_VIEW_TAG_PREFIX) {
        limits::experiment_tag(key, value)?;
    }
    store.experiment_set_tag(ExperimentId::parse(message.text("experiment_id"))?, key, value).await?;
    Ok(Empty {})
}

pub(crate) async fn delete_tag(store: Store, request: Request) -> Result<Empty> {
    let message = request
        .message(wire::DELETE_EXPERIMENT_TAG, &[("experiment_id", &[Required, Text]), ("key", &[Required, Text])])?;
    let text = message.text("experiment_id");
    store.experiment_delete_tag(ExperimentId::parse(text)?, text, message.text("key")).await?;
    Ok(Empty {})
}

/// The view a message asks for; active entities where it does not say.
pub(crate) fn view(message: &Message, field: &str) -> ViewType {
    message.optional_int(field).and_then(ViewType::from_number).unwrap_or(ViewType::ActiveOnly)
}
