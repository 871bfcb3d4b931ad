//! Tools of a version (`MCPToolRequestPayload`), and its connection options.

use super::icons::{icons, without_source};
use super::validation::{Validation, within};
use crate::json::JsonObject;
use crate::{Json, Result};

/// Maximum number of tools of a version (`_MAX_MCP_TOOLS_PER_LIST`).
const MAX_TOOLS: usize = 1_000;
/// The fields of a tool, in the order of responses.
const FIELDS: [&str; 8] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "execution"];

/// Checks the tools in a body, and returns them in the form of responses. Fields that MLflow does
/// not know are left out.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if an icon is refused. Other mistakes are recorded.
pub(super) fn tools(validation: &mut Validation, body: &JsonObject) -> Result<Option<Json>> {
    let Some(items) = validation.optional_list("", body, "tools", Some(MAX_TOOLS)) else { return Ok(None) };
    let mut tools = Vec::with_capacity(items.len());
    for (place, item) in items.into_iter().enumerate() {
        let at = within("tools", place);
        let Some(mut tool) = validation.model(&at, item) else { continue };
        validation.required_text(&at, &tool, "name");
        for key in ["title", "description"] {
            validation.optional_text(&at, &tool, key);
        }
        for key in ["inputSchema", "outputSchema", "annotations"] {
            validation.optional_object(&at, &tool, key);
        }
        if let Some(icons) = icons(validation, &at, &tool)? {
            tool.update([("icons".to_owned(), Json::List(icons))]);
        }
        validation.optional_object(&at, &tool, "execution");
        let field = |key: &str| (key.to_owned(), tool.get(key).cloned().unwrap_or(Json::Null));
        tools.push(Json::Object(FIELDS.into_iter().map(field).collect()));
    }
    Ok(Some(Json::List(tools)))
}

/// Removes the fields of the tools' icons that only responses have.
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the source of an icon is `version`.
pub(super) fn without_icon_sources(tools: Option<Json>) -> Result<Option<Json>> {
    let Some(Json::List(mut tools)) = tools else { return Ok(None) };
    for (place, tool) in tools.iter_mut().enumerate() {
        if let Json::Object(tool) = tool
            && let Some(Json::List(icons)) = tool.get("icons").cloned()
        {
            let icons = without_source(icons, &format!("tools[{place}].icons"))?;
            tool.update([("icons".to_owned(), Json::List(icons))]);
        }
    }
    Ok(Some(Json::List(tools)))
}

/// Checks the connection options in a body (`ConnectOptionSettings`).
pub(super) fn connect_options(validation: &mut Validation, body: &JsonObject) -> Option<Json> {
    let options = validation.optional_object("", body, "connect_options")?;
    let mut checked = JsonObject::default();
    for (name, option) in options.iter() {
        let at = within("connect_options", name);
        let Json::Object(option) = option else {
            validation.fail(&at, "Input should be a dictionary or an instance of ConnectOptionSettings");
            continue;
        };
        let hidden = option.get("hidden").is_some_and(|hidden| validation.boolean(&within(&at, "hidden"), hidden));
        let option = JsonObject::from_iter([("hidden".to_owned(), Json::Bool(hidden))]);
        checked.extend([(name.to_owned(), Json::Object(option))]);
    }
    Some(Json::Object(checked))
}
