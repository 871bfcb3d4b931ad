//! The events that webhooks subscribe to.

use serde::{Serialize, Serializer};

use crate::python;
use crate::{Error, Result, enum_field, messages};

/// The kind of entity that an event is about (`WebhookEntity`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookEntity {
    /// A registered model that is not a prompt.
    RegisteredModel,
    /// A version of a registered model.
    ModelVersion,
    /// A tag of a model version.
    ModelVersionTag,
    /// An alias of a model version.
    ModelVersionAlias,
    /// A prompt.
    Prompt,
    /// A version of a prompt.
    PromptVersion,
    /// A tag of a prompt.
    PromptTag,
    /// A tag of a prompt version.
    PromptVersionTag,
    /// An alias of a prompt version.
    PromptAlias,
    /// A budget of MLflow's AI gateway.
    BudgetPolicy,
}

enum_field!(WebhookEntity {
    "REGISTERED_MODEL" = 1 => Self::RegisteredModel,
    "MODEL_VERSION" = 2 => Self::ModelVersion,
    "MODEL_VERSION_TAG" = 3 => Self::ModelVersionTag,
    "MODEL_VERSION_ALIAS" = 4 => Self::ModelVersionAlias,
    "PROMPT" = 5 => Self::Prompt,
    "PROMPT_VERSION" = 6 => Self::PromptVersion,
    "PROMPT_TAG" = 7 => Self::PromptTag,
    "PROMPT_VERSION_TAG" = 8 => Self::PromptVersionTag,
    "PROMPT_ALIAS" = 9 => Self::PromptAlias,
    "BUDGET_POLICY" = 10 => Self::BudgetPolicy,
});

/// What has happened to the entity (`WebhookAction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookAction {
    /// The entity was created.
    Created,
    /// The entity was changed. No event has this action, but requests may name it.
    Updated,
    /// The entity was deleted.
    Deleted,
    /// A tag was set.
    Set,
    /// A budget was exceeded.
    Exceeded,
}

enum_field!(WebhookAction {
    "CREATED" = 1 => Self::Created,
    "UPDATED" = 2 => Self::Updated,
    "DELETED" = 3 => Self::Deleted,
    "SET" = 4 => Self::Set,
    "EXCEEDED" = 5 => Self::Exceeded,
});

/// The status of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum WebhookStatus {
    /// The webhook receives events.
    #[default]
    Active,
    /// The webhook receives nothing.
    Disabled,
}

enum_field!(WebhookStatus { "ACTIVE" = 1 => Self::Active, "DISABLED" = 2 => Self::Disabled });

impl WebhookEntity {
    /// Returns the name in deliveries and in error messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RegisteredModel => "registered_model",
            Self::ModelVersion => "model_version",
            Self::ModelVersionTag => "model_version_tag",
            Self::ModelVersionAlias => "model_version_alias",
            Self::Prompt => "prompt",
            Self::PromptVersion => "prompt_version",
            Self::PromptTag => "prompt_tag",
            Self::PromptVersionTag => "prompt_version_tag",
            Self::PromptAlias => "prompt_alias",
            Self::BudgetPolicy => "budget_policy",
        }
    }

    /// Returns the actions of events about this kind of entity, in alphabetical order
    /// (`VALID_ENTITY_ACTIONS`).
    const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::RegisteredModel | Self::ModelVersion | Self::Prompt | Self::PromptVersion => &["created"],
            Self::ModelVersionTag | Self::PromptTag | Self::PromptVersionTag => &["deleted", "set"],
            Self::ModelVersionAlias | Self::PromptAlias => &["created", "deleted"],
            Self::BudgetPolicy => &["exceeded"],
        }
    }
}

impl WebhookAction {
    /// Returns the name in deliveries and in error messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Set => "set",
            Self::Exceeded => "exceeded",
        }
    }
}

impl WebhookStatus {
    /// Returns the name in stored webhooks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Disabled => "DISABLED",
        }
    }

    /// Parses the name in a stored webhook.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Active, Self::Disabled].into_iter().find(|status| status.name() == name)
    }
}

/// Declares the events with their names, entities and actions.
macro_rules! events {
    ($($(#[$about:meta])+ $event:ident = $name:literal ($entity:ident, $action:ident);)+) => {
        /// An event that a webhook can subscribe to. Events are ordered by their names, which is the
        /// order in which MLflow lists the events of a webhook.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WebhookEvent {
            $($(#[$about])+ $event,)+
        }

        impl WebhookEvent {
            /// All events, in order.
            pub const ALL: &'static [Self] = &[$(Self::$event),+];

            /// Returns the name, such as `prompt_tag.set`. Webhooks are stored with the names of
            /// their events, so a name must not change.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$event => $name,)+
                }
            }

            /// Returns the kind of entity that the event is about.
            #[must_use]
            pub const fn entity(self) -> WebhookEntity {
                match self {
                    $(Self::$event => WebhookEntity::$entity,)+
                }
            }

            /// Returns what has happened to the entity.
            #[must_use]
            pub const fn action(self) -> WebhookAction {
                match self {
                    $(Self::$event => WebhookAction::$action,)+
                }
            }
        }
    };
}

events! {
    /// A budget of the AI gateway was exceeded. This server never sends this event.
    BudgetPolicyExceeded = "budget_policy.exceeded" (BudgetPolicy, Exceeded);
    /// A model version was created.
    ModelVersionCreated = "model_version.created" (ModelVersion, Created);
    /// An alias of a model version was set.
    ModelVersionAliasCreated = "model_version_alias.created" (ModelVersionAlias, Created);
    /// An alias of a model version was deleted.
    ModelVersionAliasDeleted = "model_version_alias.deleted" (ModelVersionAlias, Deleted);
    /// A tag of a model version was deleted.
    ModelVersionTagDeleted = "model_version_tag.deleted" (ModelVersionTag, Deleted);
    /// A tag of a model version was set.
    ModelVersionTagSet = "model_version_tag.set" (ModelVersionTag, Set);
    /// A prompt was created.
    PromptCreated = "prompt.created" (Prompt, Created);
    /// An alias of a prompt version was set.
    PromptAliasCreated = "prompt_alias.created" (PromptAlias, Created);
    /// An alias of a prompt version was deleted.
    PromptAliasDeleted = "prompt_alias.deleted" (PromptAlias, Deleted);
    /// A tag of a prompt was deleted.
    PromptTagDeleted = "prompt_tag.deleted" (PromptTag, Deleted);
    /// A tag of a prompt was set.
    PromptTagSet = "prompt_tag.set" (PromptTag, Set);
    /// A prompt version was created.
    PromptVersionCreated = "prompt_version.created" (PromptVersion, Created);
    /// A tag of a prompt version was deleted.
    PromptVersionTagDeleted = "prompt_version_tag.deleted" (PromptVersionTag, Deleted);
    /// A tag of a prompt version was set.
    PromptVersionTagSet = "prompt_version_tag.set" (PromptVersionTag, Set);
    /// A registered model was created.
    RegisteredModelCreated = "registered_model.created" (RegisteredModel, Created);
}

impl WebhookEvent {
    /// Parses a name, such as `prompt_tag.set`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.name() == name)
    }

    /// Returns the event with this entity and this action.
    ///
    /// # Errors
    /// Returns MLflow's error if there are no such events.
    pub fn of(entity: WebhookEntity, action: WebhookAction) -> Result<Self> {
        let found = Self::ALL.iter().copied().find(|event| event.entity() == entity && event.action() == action);
        found.ok_or_else(|| {
            let valid = python::repr_list(entity.actions());
            let (entity, action) = (entity.name(), action.name());
            Error::invalid(format!("Invalid action '{action}' for entity '{entity}'. Valid actions are: {valid}"))
        })
    }
}

/// An event in a response, with the names of protobuf's enums.
impl Serialize for WebhookEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Event {
            entity: String,
            action: String,
        }
        Event { entity: self.entity().name().to_uppercase(), action: self.action().name().to_uppercase() }
            .serialize(serializer)
    }
}

messages! {
    /// An event in a request.
    #[derive(Copy, Eq)]
    WebhookEventMessage {
        entity: Option<WebhookEntity>,
        action: Option<WebhookAction>,
    }
}

impl WebhookEventMessage {
    /// Returns the event.
    ///
    /// # Errors
    /// Returns MLflow's error if the entity has no such action. If the entity or the action is
    /// missing or unknown, MLflow fails with status 500, and this server returns an error of its
    /// own.
    pub fn event(self) -> Result<WebhookEvent> {
        let (Some(entity), Some(action)) = (self.entity, self.action) else {
            return Err(Error::invalid(
                "Invalid webhook event. Each event has a known 'entity' and a known 'action', for example \
                 {\"entity\": \"MODEL_VERSION\", \"action\": \"CREATED\"}.",
            ));
        };
        WebhookEvent::of(entity, action)
    }
}

/// Returns the events of a request, in the request's order.
///
/// # Errors
/// Returns the error of the first invalid event.
pub fn read_events(messages: &[WebhookEventMessage]) -> Result<Vec<WebhookEvent>> {
    messages.iter().map(|message| message.event()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_known_by_name_and_by_parts_in_order_of_entity_and_action() {
        assert_eq!(WebhookEvent::ALL.len(), 15);
        for event in WebhookEvent::ALL.iter().copied() {
            assert_eq!(event.name(), format!("{}.{}", event.entity().name(), event.action().name()));
            assert_eq!(WebhookEvent::parse(event.name()), Some(event));
            assert_eq!(WebhookEvent::of(event.entity(), event.action()), Ok(event));
        }
        let keys: Vec<_> =
            WebhookEvent::ALL.iter().map(|event| (event.entity().name(), event.action().name())).collect();
        assert!(keys.is_sorted());
        assert_eq!(WebhookEvent::parse("prompt.updated"), None);
    }

    #[test]
    fn other_pairs_get_mlflows_message() {
        let message = |entity, action| WebhookEvent::of(entity, action).unwrap_err().message;
        assert_eq!(
            message(WebhookEntity::PromptTag, WebhookAction::Created),
            "Invalid action 'created' for entity 'prompt_tag'. Valid actions are: ['deleted', 'set']"
        );
        assert_eq!(
            message(WebhookEntity::Prompt, WebhookAction::Updated),
            "Invalid action 'updated' for entity 'prompt'. Valid actions are: ['created']"
        );
        let nothing = WebhookEventMessage { entity: None, action: Some(WebhookAction::Set) };
        assert!(read_events(&[nothing]).unwrap_err().message.starts_with("Invalid webhook event."));
    }

    #[test]
    fn responses_have_the_names_of_protobuf() {
        let json = serde_json::to_string(&WebhookEvent::ModelVersionAliasCreated).unwrap();
        assert_eq!(json, r#"{"entity":"MODEL_VERSION_ALIAS","action":"CREATED"}"#);
        assert_eq!(serde_json::to_string(&WebhookStatus::Disabled).unwrap(), "\"DISABLED\"");
        assert_eq!(WebhookStatus::parse("ACTIVE"), Some(WebhookStatus::Active));
    }
}
