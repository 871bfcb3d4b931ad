//! Handlers of `registered-models/…` but for aliases.

use mlflow_api::checks::Check::{Custom, Integer, List, Required, Text, TextItems};
use mlflow_api::checks::at_most;
use mlflow_api::message::Message;
use mlflow_api::registry::{self as wire, ModelStage, Models, OneModel, Versions};
use mlflow_api::tracking::Empty;
use mlflow_api::{Request, Result, Workspace, limits_registry as limits};

use crate::store::{NewModel, Search, Store};

/// Registered models on a page where the request does not say (`SearchRegisteredModels` in `model_registry.proto`).
const DEFAULT_PAGE: i64 = 100;

pub(crate) async fn create(store: Store, request: Request) -> Result<OneModel> {
    let message = request
        .message(wire::CREATE_MODEL, &[("name", &[Text, Required]), ("tags", &[List]), ("description", &[Text])])?;
    let new = NewModel {
        name: message.text("name").to_owned(),
        description: message.text("description").to_owned(),
        tags: message.key_values("tags"),
    };
    Ok(OneModel { registered_model: store.model_create(&Workspace::default(), &new).await? })
}

pub(crate) async fn get(store: Store, request: Request) -> Result<OneModel> {
    let message = request.message(wire::MODEL_NAME, &[("name", &[Text, Required])])?;
    Ok(OneModel { registered_model: store.model_get(message.text("name")).await? })
}

pub(crate) async fn search(store: Store, request: Request) -> Result<Models> {
    let message = request.message(
        wire::SEARCH,
        &[
            ("filter", &[Text]),
            ("max_results", &[Integer, Custom(|value| at_most(value, limits::MODELS))]),
            ("order_by", &[List, TextItems]),
            ("page_token", &[Text]),
        ],
    )?;
    store.model_search(&Workspace::default(), &search_of(&message, DEFAULT_PAGE)).await
}

/// A search as a message asks for it.
pub(crate) fn search_of(message: &Message, default_page: i64) -> Search {
    Search {
        filter: message.text("filter").to_owned(),
        order_by: message.texts("order_by"),
        max_results: message.optional_int("max_results").unwrap_or(default_page),
        page_token: message.text("page_token").to_owned(),
    }
}

pub(crate) async fn update(store: Store, request: Request) -> Result<OneModel> {
    let message = request.message(wire::UPDATE_MODEL, &[("name", &[Text, Required]), ("description", &[Text])])?;
    let registered_model = store.model_update(message.text("name"), message.text("description")).await?;
    Ok(OneModel { registered_model })
}

pub(crate) async fn rename(store: Store, request: Request) -> Result<OneModel> {
    let message =
        request.message(wire::RENAME_MODEL, &[("name", &[Text, Required]), ("new_name", &[Text, Required])])?;
    let registered_model =
        store.model_rename(&Workspace::default(), message.text("name"), message.text("new_name")).await?;
    Ok(OneModel { registered_model })
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::MODEL_NAME, &[("name", &[Text, Required])])?;
    store.model_delete(&Workspace::default(), message.text("name")).await?;
    Ok(Empty {})
}

pub(crate) async fn set_tag(store: Store, request: Request) -> Result<Empty> {
    let message = request
        .message(wire::SET_MODEL_TAG, &[("name", &[Text, Required]), ("key", &[Text, Required]), ("value", &[Text])])?;
    store
        .model_set_tag(&Workspace::default(), message.text("name"), message.text("key"), message.text("value"))
        .await?;
    Ok(Empty {})
}

pub(crate) async fn delete_tag(store: Store, request: Request) -> Result<Empty> {
    let message =
        request.message(wire::DELETE_MODEL_TAG, &[("name", &[Text, Required]), ("key", &[Text, Required])])?;
    store.model_delete_tag(&Workspace::default(), message.text("name"), message.text("key")).await?;
    Ok(Empty {})
}

pub(crate) async fn latest_versions(store: Store, request: Request) -> Result<Versions> {
    let message =
        request.message(wire::GET_LATEST_VERSIONS, &[("name", &[Text, Required]), ("stages", &[List, TextItems])])?;
    let stages = message.texts("stages");
    let model_versions = store
        .model_latest_versions(message.text("name"), || stages.iter().map(|stage| ModelStage::parse(stage)).collect())
        .await?;
    Ok(Versions { model_versions })
}
