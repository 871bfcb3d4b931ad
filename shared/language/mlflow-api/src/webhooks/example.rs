//! The example bodies that a test of a webhook sends.

use super::body::{EventData, body_of, event_body, object};
use super::event::WebhookEvent;
use crate::Json;

const MODEL: &str = "example_model";
const PROMPT: &str = "example_prompt";
const KEY: &str = "example_key";
const VALUE: &str = "example_value";
const ALIAS: &str = "example_alias";
const VERSION: &str = "1";

/// Returns the body of a test of this event (`get_example_payload_for_event`). `time` is in ms.
/// `workspace` is the name of the webhook's workspace if the server has workspaces.
#[must_use]
pub fn example_body(event: WebhookEvent, time: i64, workspace: Option<&str>) -> String {
    use WebhookEvent as Event;
    let tags = [(KEY.to_owned(), VALUE.to_owned())];
    let prompt_tags = [
        (crate::registry::PROMPT_TEXT_TAG.to_owned(), "Hello {{name}}!".to_owned()),
        (KEY.to_owned(), VALUE.to_owned()),
    ];
    let is_prompt = matches!(
        event,
        Event::PromptCreated
            | Event::PromptAliasCreated
            | Event::PromptAliasDeleted
            | Event::PromptVersionTagSet
            | Event::PromptVersionTagDeleted
    );
    let name = if is_prompt { PROMPT } else { MODEL };
    let data = match event {
        Event::BudgetPolicyExceeded => return body_of(event, budget_policy(), time, workspace),
        Event::RegisteredModelCreated => {
            EventData::Model { is_prompt, name, tags: &tags, description: "An example registered model" }
        }
        Event::PromptCreated => EventData::Model { is_prompt, name, tags: &tags, description: "An example prompt" },
        Event::ModelVersionCreated => EventData::ModelVersion {
            name,
            version: 1,
            source: "models:/123",
            run_id: Some("abcd1234abcd5678"),
            tags: &tags,
            description: "An example model version",
        },
        Event::PromptVersionCreated => EventData::PromptVersion {
            name: PROMPT,
            version: 1,
            tags: &prompt_tags,
            description: "An example prompt version",
        },
        Event::PromptTagSet => EventData::PromptTagSet { name: PROMPT, key: KEY, value: VALUE },
        Event::PromptTagDeleted => EventData::PromptTagDeleted { name: PROMPT, key: KEY },
        Event::ModelVersionTagSet | Event::PromptVersionTagSet => {
            EventData::VersionTagSet { is_prompt, name, version: VERSION, key: KEY, value: VALUE }
        }
        Event::ModelVersionTagDeleted | Event::PromptVersionTagDeleted => {
            EventData::VersionTagDeleted { is_prompt, name, version: VERSION, key: KEY }
        }
        Event::ModelVersionAliasCreated | Event::PromptAliasCreated => {
            EventData::AliasCreated { is_prompt, name, alias: ALIAS, version: VERSION }
        }
        Event::ModelVersionAliasDeleted | Event::PromptAliasDeleted => {
            EventData::AliasDeleted { is_prompt, name, alias: ALIAS }
        }
    };
    event_body(&data, time, workspace)
}

/// Returns the payload of the event that only MLflow's AI gateway sends.
fn budget_policy() -> crate::json::JsonObject {
    object([
        ("budget_policy_id", "bp-abc123".into()),
        ("budget_unit", "USD".into()),
        ("budget_amount", Json::Float(100.0)),
        ("current_spend", Json::Float(105.5)),
        ("duration_unit", "MONTHS".into()),
        ("duration_value", Json::Integer("1".to_owned())),
        ("target_scope", "ENDPOINT".into()),
        ("workspace", "default".into()),
        ("target_value", "ep-abc123".into()),
        ("window_start", Json::Integer("1704067200000".to_owned())),
    ])
}
