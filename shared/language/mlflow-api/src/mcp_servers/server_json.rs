//! The description of a server in a version (`ServerJSONPayload`), in the format of the registry of
//! the Model Context Protocol. Unknown fields are kept.

use super::icons::{icons, without_source};
use super::validation::{Validation, within};
use crate::json::JsonObject;
use crate::{Json, Result};

/// A checked `server_json`.
#[derive(Clone, Debug)]
pub struct ServerJson {
    /// Name of the server.
    pub name: String,
    /// Version, as written.
    pub version: String,
    /// Description, if it is a text.
    pub description: Option<String>,
    /// Icons, if there is a list of them.
    pub icons: Option<Json>,
    /// The whole object.
    pub object: Json,
}

impl ServerJson {
    /// Removes the fields of icons that only responses have.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the source of an icon is `version`.
    pub(super) fn without_icon_sources(mut self) -> Result<Self> {
        if let (Some(Json::List(icons)), Json::Object(object)) = (self.icons.take(), &mut self.object) {
            let icons = Json::List(without_source(icons, "server_json.icons")?);
            object.update([("icons".to_owned(), icons.clone())]);
            self.icons = Some(icons);
        }
        Ok(self)
    }
}

/// Checks the `server_json` in a body.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if an icon is refused. Other mistakes are recorded.
pub(super) fn server_json(validation: &mut Validation, body: &JsonObject) -> Result<Option<ServerJson>> {
    let at = "server_json";
    let Some(value) = body.get(at) else {
        validation.fail(at, "Field required");
        return Ok(None);
    };
    let Some(mut object) = validation.model(at, value.clone()) else { return Ok(None) };
    let name = validation.required_text(at, &object, "name");
    let version = validation.required_text(at, &object, "version");
    validation.optional_text(at, &object, "title");
    let description = validation.optional_text(at, &object, "description");
    let checked_icons = icons(validation, at, &object)?;
    if let Some(icons) = checked_icons {
        object.update([("icons".to_owned(), Json::List(icons))]);
    }
    update_each(validation, at, &mut object, "packages", check_package);
    update_each(validation, at, &mut object, "remotes", |validation, at, remote| {
        for key in ["type", "url"] {
            validation.optional_text(at, remote, key);
        }
    });
    if let Some(value) = object.get("repository").filter(|value| **value != Json::Null) {
        let at = within(at, "repository");
        if let Some(repository) = validation.model(&at, value.clone()) {
            for key in ["url", "source"] {
                validation.required_text(&at, &repository, key);
            }
            for key in ["id", "subfolder"] {
                validation.optional_text(&at, &repository, key);
            }
        }
    }
    validation.optional_text(at, &object, "websiteUrl");
    // The field may be written with or without the underscore.
    if object.get("_meta").is_some() {
        validation.optional_object(at, &object, "_meta");
    } else {
        validation.optional_object(at, &object, "meta");
        if let Some(meta) = object.remove("meta") {
            object.extend([("_meta".to_owned(), meta)]);
        }
    }
    let icons = object.get("icons").filter(|icons| **icons != Json::Null).cloned();
    Ok(name.zip(version).map(|(name, version)| ServerJson {
        name,
        version,
        description,
        icons,
        object: Json::Object(object),
    }))
}

fn check_package(validation: &mut Validation, at: &str, package: &mut JsonObject) {
    for key in ["registryType", "identifier"] {
        validation.required_text(at, package, key);
    }
    if package.get("transport").is_none() {
        validation.fail(&within(at, "transport"), "Field required");
    }
    for key in ["registryBaseUrl", "version"] {
        validation.optional_text(at, package, key);
    }
    update_each(validation, at, package, "environmentVariables", |validation, at, variable| {
        validation.required_text(at, variable, "name");
        validation.optional_text(at, variable, "description");
        for key in ["isRequired", "isSecret"] {
            if let Some(value) = variable.get(key).filter(|value| **value != Json::Null) {
                let value = Json::Bool(validation.boolean(&within(at, key), value));
                variable.update([(key.to_owned(), value)]);
            }
        }
    });
}

/// Checks each object of a list that may be missing or null, and updates the list.
fn update_each(
    validation: &mut Validation,
    at: &str,
    object: &mut JsonObject,
    key: &str,
    check: impl Fn(&mut Validation, &str, &mut JsonObject),
) {
    let Some(items) = validation.optional_list(at, object, key, None) else { return };
    let at = within(at, key);
    let mut checked = Vec::with_capacity(items.len());
    for (place, item) in items.into_iter().enumerate() {
        let at = within(&at, place);
        if let Some(mut item) = validation.model(&at, item) {
            check(validation, &at, &mut item);
            checked.push(Json::Object(item));
        }
    }
    object.update([(key.to_owned(), Json::List(checked))]);
}
