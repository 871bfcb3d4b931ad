//! Handlers of `model-versions/…`.

use artifacts::Directory;
use mlflow_api::checks::Check::{Bool, Custom, Integer, List, Required, Text, TextItems};
use mlflow_api::checks::at_most;
use mlflow_api::registry::{self as wire, DownloadUri, FoundVersions, IS_PROMPT_TAG, OneVersion};
use mlflow_api::tracking::Empty;
use mlflow_api::{Error, ErrorCode, Request, Result, Workspace, artifact_path, limits_registry as limits};
use service::Answer;

use crate::models::search_of;
use crate::store::{NewVersion, Store, VersionSource};

/// Model versions on a page where the request does not say (`SearchModelVersions` in `model_registry.proto`).
const DEFAULT_PAGE: i64 = 200_000;

pub(crate) async fn create(store: Store, request: Request) -> Result<OneVersion> {
    let message = request.message(
        wire::CREATE_VERSION,
        &[
            ("name", &[Text, Required]),
            ("source", &[Text, Required]),
            ("run_id", &[Text]),
            ("tags", &[List]),
            ("run_link", &[Text]),
            ("description", &[Text]),
            ("model_id", &[Text]),
        ],
    )?;
    let tags = message.key_values("tags");
    // Of a tag that is given twice, the last value counts.
    let is_prompt = tags.iter().rev().find(|(key, _)| key == IS_PROMPT_TAG).map(|(_, value)| value.to_lowercase());
    let new = NewVersion {
        name: message.text("name").to_owned(),
        source: VersionSource {
            uri: message.text("source").to_owned(),
            run_id: message.optional_text("run_id").map(str::to_owned),
            model_id: message.optional_text("model_id").map(str::to_owned),
        },
        is_prompt: is_prompt.as_deref() == Some("true"),
        tags,
        run_link: message.text("run_link").to_owned(),
        description: message.text("description").to_owned(),
    };
    Ok(OneVersion { model_version: store.version_create(&new).await? })
}

pub(crate) async fn get(store: Store, request: Request) -> Result<OneVersion> {
    let message = request.message(wire::VERSION, VERSION)?;
    Ok(OneVersion { model_version: store.version_get(message.text("name"), message.text("version")).await? })
}

pub(crate) async fn download_uri(store: Store, request: Request) -> Result<DownloadUri> {
    let message = request.message(wire::VERSION, &[])?;
    let artifact_uri = store.version_download_uri(message.text("name"), message.text("version")).await?;
    Ok(DownloadUri { artifact_uri })
}

/// Sends a file of a version that is kept below the artifact root of this server, on its own disk. Reads its arguments without
/// a message, as MLflow does.
pub(crate) async fn get_artifact(store: Store, request: Request) -> Result<Answer> {
    let path = request
        .argument("path")
        .ok_or_else(|| Error::new(ErrorCode::BadRequest, "Request must include the \"path\" query parameter."))?;
    let path = artifact_path::checked(path)?;
    let [name, version] = ["name", "version"].map(|argument| request.argument(argument).unwrap_or_default());
    let location = store.version_download_uri(name, version).await?;
    Directory::below(store.artifact_root(), &location)?.file(path).await
}

pub(crate) async fn search(store: Store, request: Request) -> Result<FoundVersions> {
    let message = request.message(
        wire::SEARCH,
        &[
            ("filter", &[Text]),
            ("max_results", &[Integer, Custom(|value| at_most(value, limits::VERSIONS))]),
            ("order_by", &[List, TextItems]),
            ("page_token", &[Text]),
        ],
    )?;
    store.version_search(&Workspace::default(), &search_of(&message, DEFAULT_PAGE)).await
}

pub(crate) async fn update(store: Store, request: Request) -> Result<OneVersion> {
    let message = request.message(
        wire::UPDATE_VERSION,
        &[("name", &[Text, Required]), ("version", &[Text, Required]), ("description", &[Text])],
    )?;
    let description = message.optional_text("description");
    let model_version = store.version_update(message.text("name"), message.text("version"), description).await?;
    Ok(OneVersion { model_version })
}

pub(crate) async fn transition_stage(store: Store, request: Request) -> Result<OneVersion> {
    let message = request.message(
        wire::TRANSITION_STAGE,
        &[
            ("name", &[Text, Required]),
            ("version", &[Text, Required]),
            ("stage", &[Text, Required]),
            ("archive_existing_versions", &[Bool]),
        ],
    )?;
    let archive = message.optional_bool("archive_existing_versions").unwrap_or_default();
    let (name, version) = (message.text("name"), message.text("version"));
    Ok(OneVersion { model_version: store.version_transition(name, version, message.text("stage"), archive).await? })
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::VERSION, VERSION)?;
    store.version_delete(message.text("name"), message.text("version")).await?;
    Ok(Empty {})
}

pub(crate) async fn set_tag(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(
        wire::SET_VERSION_TAG,
        &[("name", &[Text, Required]), ("version", &[Text, Required]), ("key", &[Text, Required]), ("value", &[Text])],
    )?;
    let (name, version) = (message.text("name"), message.text("version"));
    store.version_set_tag(name, version, message.text("key"), message.text("value")).await?;
    Ok(Empty {})
}

pub(crate) async fn delete_tag(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(
        wire::DELETE_VERSION_TAG,
        &[("name", &[Text, Required]), ("version", &[Text, Required]), ("key", &[Text, Required])],
    )?;
    store.version_delete_tag(message.text("name"), message.text("version"), message.text("key")).await?;
    Ok(Empty {})
}

const VERSION: &[mlflow_api::checks::FieldChecks] = &[("name", &[Text, Required]), ("version", &[Text, Required])];
