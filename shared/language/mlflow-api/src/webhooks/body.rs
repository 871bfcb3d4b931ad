//! The bodies of deliveries, byte for byte as MLflow writes them with Python's `json.dumps`
//! (`webhooks/delivery.py`, `webhooks/types.py`).

use time::OffsetDateTime;

use super::event::WebhookEvent;
use crate::Json;
use crate::json::JsonObject;
use crate::registry::{IS_PROMPT_TAG, PROMPT_TEXT_TAG, PROMPT_TYPE_TAG};

/// The content of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventData<'a> {
    /// A registered model or a prompt was created.
    Model {
        /// Whether it is a prompt.
        is_prompt: bool,
        /// Its name.
        name: &'a str,
        /// Its tags as sent.
        tags: &'a [(String, String)],
        /// Its description. May be empty.
        description: &'a str,
    },
    /// A version of a registered model was created.
    ModelVersion {
        /// The name of the model.
        name: &'a str,
        /// The number.
        version: u32,
        /// The source.
        source: &'a str,
        /// The run that created the version.
        run_id: Option<&'a str>,
        /// The tags as sent.
        tags: &'a [(String, String)],
        /// The description. May be empty.
        description: &'a str,
    },
    /// A version of a prompt was created.
    PromptVersion {
        /// The name of the prompt.
        name: &'a str,
        /// The number.
        version: u32,
        /// The tags as sent. One of them is the prompt's text.
        tags: &'a [(String, String)],
        /// The description. May be empty.
        description: &'a str,
    },
    /// A tag of a prompt was set.
    PromptTagSet {
        /// The name of the prompt.
        name: &'a str,
        /// The key.
        key: &'a str,
        /// The value.
        value: &'a str,
    },
    /// A tag of a prompt was deleted.
    PromptTagDeleted {
        /// The name of the prompt.
        name: &'a str,
        /// The key.
        key: &'a str,
    },
    /// A tag of a version was set.
    VersionTagSet {
        /// Whether it is a version of a prompt.
        is_prompt: bool,
        /// The name of the model.
        name: &'a str,
        /// The version as the request wrote it.
        version: &'a str,
        /// The key.
        key: &'a str,
        /// The value.
        value: &'a str,
    },
    /// A tag of a version was deleted.
    VersionTagDeleted {
        /// Whether it is a version of a prompt.
        is_prompt: bool,
        /// The name of the model.
        name: &'a str,
        /// The version as the request wrote it.
        version: &'a str,
        /// The key.
        key: &'a str,
    },
    /// An alias was set.
    AliasCreated {
        /// Whether it is an alias of a prompt.
        is_prompt: bool,
        /// The name of the model.
        name: &'a str,
        /// The alias.
        alias: &'a str,
        /// The version as the request wrote it.
        version: &'a str,
    },
    /// An alias was deleted.
    AliasDeleted {
        /// Whether it is an alias of a prompt.
        is_prompt: bool,
        /// The name of the model.
        name: &'a str,
        /// The alias.
        alias: &'a str,
    },
}

impl EventData<'_> {
    /// Returns the event.
    #[must_use]
    pub const fn event(&self) -> WebhookEvent {
        use WebhookEvent as Event;
        match self {
            Self::Model { is_prompt: true, .. } => Event::PromptCreated,
            Self::Model { .. } => Event::RegisteredModelCreated,
            Self::ModelVersion { .. } => Event::ModelVersionCreated,
            Self::PromptVersion { .. } => Event::PromptVersionCreated,
            Self::PromptTagSet { .. } => Event::PromptTagSet,
            Self::PromptTagDeleted { .. } => Event::PromptTagDeleted,
            Self::VersionTagSet { is_prompt: true, .. } => Event::PromptVersionTagSet,
            Self::VersionTagSet { .. } => Event::ModelVersionTagSet,
            Self::VersionTagDeleted { is_prompt: true, .. } => Event::PromptVersionTagDeleted,
            Self::VersionTagDeleted { .. } => Event::ModelVersionTagDeleted,
            Self::AliasCreated { is_prompt: true, .. } => Event::PromptAliasCreated,
            Self::AliasCreated { .. } => Event::ModelVersionAliasCreated,
            Self::AliasDeleted { is_prompt: true, .. } => Event::PromptAliasDeleted,
            Self::AliasDeleted { .. } => Event::ModelVersionAliasDeleted,
        }
    }

    /// Returns the fields of the payload, in MLflow's order.
    fn fields(&self) -> JsonObject {
        let text = |text: &str| Json::Text(text.to_owned());
        let text_or_null = |value: &str| if value.is_empty() { Json::Null } else { text(value) };
        match *self {
            Self::Model { is_prompt, name, tags, description } => {
                let mut tags = tag_object(tags);
                if is_prompt {
                    remove_prompt_marks(&mut tags);
                }
                object([("name", text(name)), ("tags", Json::Object(tags)), ("description", text(description))])
            }
            Self::ModelVersion { name, version, source, run_id, tags, description } => object([
                ("name", text(name)),
                ("version", text(&version.to_string())),
                ("source", text(source)),
                ("run_id", text_or_null(run_id.unwrap_or_default())),
                ("tags", Json::Object(tag_object(tags))),
                ("description", text_or_null(description)),
            ]),
            Self::PromptVersion { name, version, tags, description } => {
                let mut tags = tag_object(tags);
                let template = tags.remove(PROMPT_TEXT_TAG).unwrap_or(Json::Null);
                remove_prompt_marks(&mut tags);
                object([
                    ("name", text(name)),
                    ("version", text(&version.to_string())),
                    ("template", template),
                    ("tags", Json::Object(tags)),
                    ("description", text_or_null(description)),
                ])
            }
            Self::PromptTagSet { name, key, value } => {
                object([("name", text(name)), ("key", text(key)), ("value", text(value))])
            }
            Self::PromptTagDeleted { name, key } => object([("name", text(name)), ("key", text(key))]),
            Self::VersionTagSet { name, version, key, value, .. } => {
                object([("name", text(name)), ("version", text(version)), ("key", text(key)), ("value", text(value))])
            }
            Self::VersionTagDeleted { name, version, key, .. } => {
                object([("name", text(name)), ("version", text(version)), ("key", text(key))])
            }
            Self::AliasCreated { name, alias, version, .. } => {
                object([("name", text(name)), ("alias", text(alias)), ("version", text(version))])
            }
            Self::AliasDeleted { name, alias, .. } => object([("name", text(name)), ("alias", text(alias))]),
        }
    }
}

/// Creates a JSON object.
pub(super) fn object<const N: usize>(fields: [(&str, Json); N]) -> JsonObject {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns tags as an object. A repeated key keeps its first position and has its last value.
fn tag_object(tags: &[(String, String)]) -> JsonObject {
    tags.iter().map(|(key, value)| (key.clone(), Json::Text(value.clone()))).collect()
}

/// Removes the tags that only mark a prompt and its type.
fn remove_prompt_marks(tags: &mut JsonObject) {
    tags.remove(IS_PROMPT_TAG);
    tags.remove(PROMPT_TYPE_TAG);
}

/// Returns the body of a delivery. `time` is in ms. `workspace` is the name of the webhook's
/// workspace if the server has workspaces.
#[must_use]
pub fn event_body(data: &EventData<'_>, time: i64, workspace: Option<&str>) -> String {
    body_of(data.event(), data.fields(), time, workspace)
}

/// Returns the body of a delivery with this payload.
pub(super) fn body_of(event: WebhookEvent, payload: JsonObject, time: i64, workspace: Option<&str>) -> String {
    let mut body = object([
        ("entity", event.entity().name().into()),
        ("action", event.action().name().into()),
        ("timestamp", timestamp_text(time).as_str().into()),
        ("data", Json::Object(payload)),
    ]);
    body.extend(workspace.map(|workspace| ("workspace".to_owned(), workspace.into())));
    Json::Object(body).print()
}

/// Formats a time in ms like Python's `datetime.fromtimestamp(…, timezone.utc).isoformat()`, which
/// omits a fraction of zero.
#[must_use]
pub fn timestamp_text(time: i64) -> String {
    let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time) * 1_000_000);
    let instant = instant.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, (hour, minute, second, micros)) = (instant.date(), instant.to_hms_micro());
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}+00:00")
}
