//! The previews of a trace's request and response that lists show.

use mlflow_api::Json;
use mlflow_api::limits::truncated;

/// Maximum number of characters in a preview.
const MAX_LENGTH: usize = 1000;

/// Error for a text of an unexpected form, which has no preview.
pub(crate) struct NoPreview;

/// Returns the preview of an attribute. For a chat, it is the text of the last message from `role`.
/// For any other value, it is the JSON.
pub(crate) fn preview(value: &Json, role: &str) -> Result<String, NoPreview> {
    let (text, parsed) = match value {
        Json::Text(text) => (text.clone(), crate::json_text::read(text)),
        // MLflow prints a dictionary, but fails on a list.
        Json::Object(_) => (value.print(), Some(value.clone())),
        _ => return Err(NoPreview),
    };
    let content = match parsed.as_ref().and_then(messages) {
        Some(messages) => match last(&messages, role).and_then(content) {
            Some(Json::Text(content)) if !content.is_empty() => content.clone(),
            Some(odd) if odd.is_true() => return Err(NoPreview),
            _ => text,
        },
        None => text,
    };
    if content.chars().nth(MAX_LENGTH).is_none() {
        return Ok(content);
    }
    Ok(format!("{}...", truncated(MAX_LENGTH - 3, &content)))
}

/// Returns the messages of `OpenAI`'s chat completions and responses, or `None` if there are none.
fn messages(value: &Json) -> Option<Vec<&Json>> {
    let object = value.object()?;
    let list = |name: &str| match object.get(name) {
        Some(Json::List(items)) if !items.is_empty() => Some(items),
        _ => None,
    };
    let among = |items| Some(of_list(items).collect::<Vec<_>>()).filter(|messages| !messages.is_empty());
    if let Some(items) = list("messages") {
        return among(items);
    }
    let choice = list("choices").and_then(|choices| choices.first()?.object()?.get("message"));
    if let Some(message) = choice.filter(|message| is_message(message)) {
        return Some(vec![message]);
    }
    if let Some(items) = list("input").or_else(|| list("output")) {
        return among(items);
    }
    messages(object.get("request")?)
}

fn of_list(items: &[Json]) -> impl Iterator<Item = &Json> {
    items.iter().filter(|item| is_message(item))
}

fn is_message(value: &Json) -> bool {
    value.object().is_some_and(|object| object.get("role").is_some() && object.get("content").is_some())
}

fn last<'a>(messages: &[&'a Json], role: &str) -> Option<&'a Json> {
    let from =
        |message: &&&Json| message.object().and_then(|object| object.get("role")) == Some(&Json::Text(role.to_owned()));
    messages.iter().rev().find(from).or(messages.last()).copied()
}

/// Returns the text of a message, or the first of its parts that is a text.
fn content(message: &Json) -> Option<&Json> {
    match message.object()?.get("content")? {
        text @ Json::Text(_) => Some(text),
        Json::List(parts) => parts.iter().find_map(|part| match part {
            Json::Text(_) => Some(part),
            Json::Object(object) => {
                let kind = object.get("type")?;
                let text = ["text", "output_text"].into_iter().any(|name| *kind == Json::from(name));
                text.then(|| object.get("text").unwrap_or(&Json::Null))
            }
            _ => None,
        }),
        _ => None,
    }
}
