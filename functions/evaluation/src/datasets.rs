//! Handlers of `datasets/…`: evaluation datasets.

use mlflow_api::checks::Check::{Integer, List, Required, Text};
use mlflow_api::evaluation_datasets::{
    self as wire, DatasetExperiments, DatasetRecords, Datasets, DeletedRecords, MergedRecords, OneDataset,
};
use mlflow_api::tracking::Empty;
use mlflow_api::{Error, Json, Request, Result};

use crate::store::{DatasetSearch, NewDataset, Store, column};

/// Datasets on a page where the request does not say (`SearchEvaluationDatasets` in `service.proto`).
const DEFAULT_PAGE: i64 = 1_000;
/// Records on a page where the request does not say.
const DEFAULT_RECORDS: usize = 1_000;
/// The tag that names a user.
const USER_TAG: &str = "mlflow.user";

pub(crate) async fn create(store: Store, request: Request) -> Result<OneDataset> {
    let message = request.message(
        wire::CREATE_DATASET,
        &[("name", &[Required, Text]), ("experiment_ids", &[List]), ("tags", &[Text])],
    )?;
    let mut new = NewDataset {
        name: message.text("name").to_owned(),
        experiment_ids: message.texts("experiment_ids"),
        ..NewDataset::default()
    };
    let tags = match message.text("tags") {
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
        // Python takes every other empty value for no tags.
        other if !other.is_true() => {}
        other => return Err(no_object("tags", &other)),
    }
    Ok(OneDataset { dataset: store.dataset_create(&new).await? })
}

pub(crate) async fn get(store: Store, request: Request) -> Result<OneDataset> {
    Ok(OneDataset { dataset: store.dataset_get(dataset_id(&request)).await? })
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    store.dataset_delete(dataset_id(&request)).await?;
    Ok(Empty {})
}

pub(crate) async fn search(store: Store, request: Request) -> Result<Datasets> {
    let message = request.message(
        wire::SEARCH_DATASETS,
        &[
            ("experiment_ids", &[List]),
            ("filter_string", &[Text]),
            ("max_results", &[Integer]),
            ("order_by", &[List]),
            ("page_token", &[Text]),
        ],
    )?;
    let max_results = message.optional_int("max_results").unwrap_or(DEFAULT_PAGE);
    if max_results == 0 {
        // To Python, 0 is as good as nothing, and nothing is not a number.
        let message = "Invalid value None for parameter 'max_results' supplied. It must be a positive integer";
        return Err(Error::invalid(message));
    }
    let search = DatasetSearch {
        experiment_ids: message.texts("experiment_ids"),
        filter: message.text("filter_string").to_owned(),
        order_by: message.texts("order_by"),
        max_results,
        page_token: message.text("page_token").to_owned(),
    };
    store.dataset_search(&search).await
}

pub(crate) async fn set_tags(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::SET_DATASET_TAGS, &[("tags", &[Required, Text])])?;
    store.dataset_set_tags(dataset_id(&request), json("tags", message.text("tags"))?).await?;
    Ok(Empty {})
}

pub(crate) async fn delete_tag(store: Store, request: Request) -> Result<Empty> {
    store.dataset_delete_tag(dataset_id(&request), request.path_part("key")).await?;
    Ok(Empty {})
}

pub(crate) async fn merge_records(store: Store, request: Request) -> Result<MergedRecords> {
    let message = request.message(wire::UPSERT_DATASET_RECORDS, &[("records", &[Required, Text])])?;
    let records = json("records", message.text("records"))?;
    store.dataset_merge_records(dataset_id(&request), records).await
}

pub(crate) async fn records(store: Store, request: Request) -> Result<DatasetRecords> {
    let message =
        request.message(wire::GET_DATASET_RECORDS, &[("max_results", &[Integer]), ("page_token", &[Text])])?;
    let max_results = match message.int("max_results") {
        0 => DEFAULT_RECORDS,
        results => usize::try_from(results).map_err(|_| {
            Error::invalid(format!(
                "Invalid value {results} for parameter 'max_results' supplied. It must be a positive integer"
            ))
        })?,
    };
    store.dataset_records(dataset_id(&request), max_results, message.text("page_token")).await
}

pub(crate) async fn delete_records(store: Store, request: Request) -> Result<DeletedRecords> {
    let message = request.message(wire::DELETE_DATASET_RECORDS, &[("dataset_record_ids", &[List])])?;
    let deleted = store.dataset_delete_records(dataset_id(&request), &message.texts("dataset_record_ids")).await?;
    Ok(DeletedRecords { deleted_count: deleted })
}

pub(crate) async fn experiments(store: Store, request: Request) -> Result<DatasetExperiments> {
    Ok(DatasetExperiments { experiment_ids: store.dataset_experiments(dataset_id(&request)).await? })
}

pub(crate) async fn add_experiments(store: Store, request: Request) -> Result<OneDataset> {
    let message = request.message(wire::DATASET_EXPERIMENTS, &[("experiment_ids", &[List])])?;
    let experiments = message.texts("experiment_ids");
    Ok(OneDataset { dataset: store.dataset_add_experiments(dataset_id(&request), &experiments).await? })
}

pub(crate) async fn remove_experiments(store: Store, request: Request) -> Result<OneDataset> {
    let message = request.message(wire::DATASET_EXPERIMENTS, &[("experiment_ids", &[List])])?;
    let experiments = message.texts("experiment_ids");
    Ok(OneDataset { dataset: store.dataset_remove_experiments(dataset_id(&request), &experiments).await? })
}

/// The dataset that the path names.
fn dataset_id(request: &Request) -> &str {
    request.path_part("dataset_id")
}

/// What a field holds as JSON in a text.
fn json(field: &str, text: &str) -> Result<Json> {
    Json::parse(text).ok_or_else(|| Error::invalid(format!("The value of '{field}' is not valid JSON.")))
}

fn no_object(field: &str, value: &Json) -> Error {
    Error::invalid(format!("The value of '{field}' must be a JSON object, got {}.", value.type_name()))
}
