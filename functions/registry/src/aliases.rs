//! Handlers of `registered-models/alias`.

use mlflow_api::checks::Check::{Required, Text};
use mlflow_api::registry::{self as wire, OneVersion};
use mlflow_api::tracking::Empty;
use mlflow_api::{Request, Result};

use crate::store::Store;

pub(crate) async fn get(store: Store, request: Request) -> Result<OneVersion> {
    let message = request.message(wire::ALIAS, &[("name", &[Text, Required]), ("alias", &[Text, Required])])?;
    Ok(OneVersion { model_version: store.alias_get(message.text("name"), message.text("alias")).await? })
}

pub(crate) async fn set(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(
        wire::SET_ALIAS,
        &[("name", &[Text, Required]), ("alias", &[Text, Required]), ("version", &[Text, Required])],
    )?;
    store.alias_set(message.text("name"), message.text("alias"), message.text("version")).await?;
    Ok(Empty {})
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::ALIAS, &[("name", &[Text, Required]), ("alias", &[Text, Required])])?;
    store.alias_delete(message.text("name"), message.text("alias")).await?;
    Ok(Empty {})
}
