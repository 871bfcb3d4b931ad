//! Handlers of `logged-models/…`.

use artifacts::Directory;
use mlflow_api::checks::Check::{Integer, List, Required, Text, TextItems};
use mlflow_api::logged_models::{self as wire, Artifacts, LoggedModels, ModelStatus, OneModel};
use mlflow_api::message::Message;
use mlflow_api::tracking::Empty;
use mlflow_api::{Error, ErrorCode, ExperimentId, Request, Result, artifact_path};
use search::ModelOrderBy;
use service::Answer;

use crate::store::{LoggedModelSearch, NewLoggedModel, Store};

/// The variable part of the paths.
const MODEL: &str = "model_id";
/// Models on a page where the request does not say (`SearchLoggedModels` in `service.proto`).
const DEFAULT_PAGE: i64 = 50;

pub(crate) async fn create(store: Store, request: Request) -> Result<OneModel> {
    let message = request.message(
        wire::CREATE,
        &[
            ("experiment_id", &[Text, Required]),
            ("name", &[Text]),
            ("model_type", &[Text]),
            ("source_run_id", &[Text]),
            ("params", &[List]),
            ("tags", &[List]),
        ],
    )?;
    let new = NewLoggedModel {
        name: message.text("name").to_owned(),
        model_type: message.text("model_type").to_owned(),
        source_run_id: message.text("source_run_id").to_owned(),
        params: message.key_values("params"),
        tags: message.key_values("tags"),
    };
    wire::check_name(&new.name)?;
    let experiment = ExperimentId::parse(message.text("experiment_id"))?;
    let model = store.logged_model_create(experiment, &new).await?;
    Ok(OneModel { model })
}

pub(crate) async fn get(store: Store, request: Request) -> Result<OneModel> {
    let allow_deleted = request.argument("allow_deleted").is_some_and(|value| value.to_lowercase() == "true");
    let model = store.logged_model_get(request.path_part(MODEL), allow_deleted).await?;
    Ok(OneModel { model })
}

/// The model is the one that the body names, whatever the path says; as in MLflow.
pub(crate) async fn finalize(store: Store, request: Request) -> Result<OneModel> {
    let message =
        request.message(wire::FINALIZE, &[("model_id", &[Text, Required]), ("status", &[Integer, Required])])?;
    let status = ModelStatus::from_number(message.int("status"));
    let model = store.logged_model_finalize(message.text("model_id"), status).await?;
    Ok(OneModel { model })
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    store.logged_model_delete(request.path_part(MODEL)).await?;
    Ok(Empty {})
}

/// The model is the one of the path; the body has to name one, too.
pub(crate) async fn log_params(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::LOG_PARAMS, &[("model_id", &[Text, Required]), ("params", &[List])])?;
    store.logged_model_log_params(request.path_part(MODEL), message.key_values("params")).await?;
    Ok(Empty {})
}

pub(crate) async fn set_tags(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::SET_TAGS, &[("tags", &[List])])?;
    store.logged_model_set_tags(request.path_part(MODEL), message.key_values("tags")).await?;
    Ok(Empty {})
}

pub(crate) async fn delete_tag(store: Store, request: Request) -> Result<Empty> {
    store.logged_model_delete_tag(request.path_part(MODEL), request.path_part("tag_key")).await?;
    Ok(Empty {})
}

pub(crate) async fn search(store: Store, request: Request) -> Result<LoggedModels> {
    let message = request.message(
        wire::SEARCH,
        &[
            ("experiment_ids", &[List, TextItems, Required]),
            ("filter", &[Text]),
            ("datasets", &[List]),
            ("max_results", &[Integer]),
            ("order_by", &[List]),
            ("page_token", &[Text]),
        ],
    )?;
    let dataset = |field: &Message| (field.text("dataset_name").to_owned(), field.text("dataset_digest").to_owned());
    let order_by = |clause: &Message| {
        let (dataset_name, dataset_digest) = dataset(clause);
        let ascending = clause.optional_bool("ascending").unwrap_or(true);
        ModelOrderBy { field: clause.text("field_name").to_owned(), ascending, dataset_name, dataset_digest }
    };
    let search = LoggedModelSearch {
        experiment_ids: message.texts("experiment_ids"),
        filter: message.text("filter").to_owned(),
        datasets: message.messages("datasets").map(dataset).collect(),
        order_by: message.messages("order_by").map(order_by).collect(),
        max_results: message.optional_int("max_results").unwrap_or(DEFAULT_PAGE),
        page_token: message.text("page_token").to_owned(),
    };
    store.logged_model_search(&search).await
}

/// Lists artifacts of a model that keeps them below the artifact root of this server, on its own disk.
pub(crate) async fn list_artifacts(store: Store, request: Request) -> Result<Artifacts> {
    let message = request.message(wire::LIST_ARTIFACTS, &[("artifact_directory_path", &[Text])])?;
    let path = artifact_path::checked(message.text("artifact_directory_path"))?;
    let root_uri = store.logged_model_artifact_uri(request.path_part(MODEL)).await?;
    let files = Directory::below(store.artifact_root(), &root_uri)?.list(path).await?;
    Ok(Artifacts { root_uri, files })
}

/// Sends an artifact, likewise.
pub(crate) async fn get_artifact(store: Store, request: Request) -> Result<Answer> {
    let path = request.argument("artifact_file_path").filter(|path| !path.is_empty()).ok_or_else(|| {
        let message = "Request must include the \"artifact_file_path\" query parameter.";
        Error::new(ErrorCode::BadRequest, message)
    })?;
    let path = artifact_path::checked(path)?;
    let location = store.logged_model_artifact_uri(request.path_part(MODEL)).await?;
    Directory::below(store.artifact_root(), &location)?.file(path).await
}
