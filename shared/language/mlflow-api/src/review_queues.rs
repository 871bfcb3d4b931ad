//! Review queues: traces for people to review (`review_queues.proto`, and `validation.py` in
//! MLflow's `genai/review_queues`).

use std::collections::HashSet;
use std::hash::Hash;

use serde::Serialize;

use crate::{Error, Result, python};

/// Maximum length of names and users, in characters.
const MAX_NAME_LENGTH: usize = 250;
/// Maximum length of the id of a label schema, in characters.
const MAX_SCHEMA_ID_LENGTH: usize = 36;
/// Maximum length of the id of an item, in characters.
const MAX_ITEM_ID_LENGTH: usize = 50;
/// Maximum number of users that a queue is assigned to.
pub const MAX_USERS: usize = 10;
/// Maximum number of label schemas of a queue. MLflow has no limit.
pub const MAX_SCHEMAS: usize = 100;
/// Maximum number of items that one request adds or removes. MLflow has no limit.
pub const MAX_ITEMS: usize = 1_000;
/// Name of the queue on servers without users. Custom queues must not have this name.
const RESERVED_NAME: &str = "default";

/// The type of a review queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReviewQueueType {
    /// The queue of one user, which has the user's name and all label schemas of the experiment.
    User,
    /// A queue with a name, users and label schemas of its own.
    Custom,
}

crate::enum_field!(ReviewQueueType {
    "USER" = 1 => Self::User,
    "CUSTOM" = 2 => Self::Custom,
});

impl ReviewQueueType {
    /// Returns the type that a request has set.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the request has not set any.
    pub fn sent(sent: Option<Self>) -> Result<Self> {
        sent.ok_or_else(|| Error::invalid("`queue_type` must be one of USER or CUSTOM; got proto enum value 0."))
    }

    /// Returns MLflow's name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "USER",
            Self::Custom => "CUSTOM",
        }
    }

    /// Returns the type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::User, Self::Custom].into_iter().find(|kind| kind.name() == name)
    }
}

/// The type of a review queue's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReviewItemType {
    /// A trace.
    Trace,
}

crate::enum_field!(ReviewItemType { "TRACE" = 1 => Self::Trace });

/// The status of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReviewStatus {
    /// Not reviewed yet.
    Pending,
    /// Reviewed.
    Complete,
    /// A user has declined to review it.
    Declined,
}

crate::enum_field!(ReviewStatus {
    "PENDING" = 1 => Self::Pending,
    "COMPLETE" = 2 => Self::Complete,
    "DECLINED" = 3 => Self::Declined,
});

impl ReviewStatus {
    const ALL: [Self; 3] = [Self::Pending, Self::Complete, Self::Declined];

    /// Returns the status that a request has set.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the request has not set any.
    pub fn sent(sent: Option<Self>) -> Result<Self> {
        sent.ok_or_else(|| {
            Error::invalid("`status` must be one of PENDING, COMPLETE, or DECLINED; got proto enum value 0.")
        })
    }

    /// Returns MLflow's name of the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Complete => "COMPLETE",
            Self::Declined => "DECLINED",
        }
    }

    /// Returns the status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Checks the user who sets the status of an item, as given by a client, and returns the user
    /// in normalized form (`set_review_queue_item_status`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the user is missing, superfluous or too long.
    pub fn completed_by(self, user: Option<&str>) -> Result<Option<String>> {
        let user = user.map(normalized_user);
        match (self, &user) {
            (Self::Pending, Some(_)) => {
                return Err(Error::invalid("`completed_by` must not be set when reopening an item to `pending`."));
            }
            (Self::Complete | Self::Declined, None) => return Err(self.lacks_user()),
            (Self::Complete | Self::Declined, Some(user)) if user.is_empty() => return Err(self.lacks_user()),
            _ => {}
        }
        if let Some(length) = user.as_ref().map(|user| user.chars().count()).filter(|length| *length > MAX_NAME_LENGTH)
        {
            return Err(Error::invalid(format!(
                "`completed_by` must be at most {MAX_NAME_LENGTH} characters; got {length}."
            )));
        }
        Ok(user)
    }

    fn lacks_user(self) -> Error {
        let status = self.name().to_lowercase();
        Error::invalid(format!("`completed_by` is required when setting status to `{status}`."))
    }
}

fn check_text(value: &str, field: &str, most: usize) -> Result<()> {
    if value.is_empty() {
        return Err(Error::invalid(format!("`{field}` must be a non-empty string; got ''.")));
    }
    let length = value.chars().count();
    if length > most {
        return Err(Error::invalid(format!("`{field}` must be at most {most} characters; got {length}.")));
    }
    Ok(())
}

/// Returns the values without repetitions, in their order.
fn deduplicated<T: Clone + Eq + Hash>(values: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

/// Returns the form in which users are compared and stored (`normalize_user`).
#[must_use]
pub fn normalized_user(user: &str) -> String {
    python::strip(user).to_lowercase()
}

/// Checks and normalizes the users that a queue is assigned to (`normalize_users`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if a name is empty or too long, or if there are too many.
pub fn normalized_users(users: &[String]) -> Result<Vec<String>> {
    let users: Vec<_> = users.iter().map(|user| normalized_user(user)).collect();
    users.iter().try_for_each(|user| check_text(user, "user", MAX_NAME_LENGTH))?;
    let users = deduplicated(users);
    if users.len() > MAX_USERS {
        return Err(Error::invalid(format!(
            "A review queue can have at most {MAX_USERS} assigned users; got {}.",
            users.len()
        )));
    }
    Ok(users)
}

/// Checks and normalizes the ids of a queue's label schemas (`normalize_schema_ids`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if an id is empty or too long, or if there are too many.
pub fn normalized_schema_ids(ids: &[String]) -> Result<Vec<String>> {
    let ids: Vec<_> = ids.iter().map(|id| python::strip(id).to_owned()).collect();
    ids.iter().try_for_each(|id| check_text(id, "schema_id", MAX_SCHEMA_ID_LENGTH))?;
    let ids = deduplicated(ids);
    if ids.len() > MAX_SCHEMAS {
        return Err(Error::invalid(format!(
            "A review queue can have at most {MAX_SCHEMAS} label schemas; got {}.",
            ids.len()
        )));
    }
    Ok(ids)
}

/// Checks and normalizes the ids of items to add or remove (`validate_item_ids_for_attach`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if there are none or too many, or if an id is empty or too
/// long.
pub fn normalized_item_ids(ids: &[String]) -> Result<Vec<String>> {
    if ids.is_empty() {
        return Err(Error::invalid("`item_ids` must be a non-empty list; got []."));
    }
    let ids: Vec<_> = ids.iter().map(|id| python::strip(id).to_owned()).collect();
    ids.iter().try_for_each(|id| check_text(id, "item_id", MAX_ITEM_ID_LENGTH))?;
    let ids = deduplicated(ids);
    if ids.len() > MAX_ITEMS {
        return Err(Error::invalid(format!("A request names at most {MAX_ITEMS} items. Send several requests.")));
    }
    Ok(ids)
}

/// Checks and normalizes the name of a custom queue (`validate_custom_queue_name`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the name is empty, too long or reserved.
pub fn custom_queue_name(name: &str) -> Result<String> {
    let name = python::strip(name);
    check_text(name, "name", MAX_NAME_LENGTH)?;
    if name.to_lowercase() == RESERVED_NAME {
        return Err(Error::invalid(format!(
            "`{name}` is a reserved queue name and cannot be used for a custom queue."
        )));
    }
    Ok(name.to_owned())
}

/// Checks and normalizes the new owner of a queue (`validate_queue_owner`).
///
/// # Errors
/// Fails with `INVALID_PARAMETER_VALUE` if the name is empty or too long.
pub fn queue_owner(owner: &str) -> Result<String> {
    let owner = python::strip(owner);
    check_text(owner, "new_owner", MAX_NAME_LENGTH)?;
    Ok(owner.to_owned())
}

/// A queue to create, checked and normalized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReviewQueue {
    /// The type.
    pub kind: ReviewQueueType,
    /// The name.
    pub name: String,
    /// The users that the queue is assigned to.
    pub users: Vec<String>,
    /// The ids of the queue's label schemas.
    pub schema_ids: Vec<String>,
}

impl NewReviewQueue {
    /// Checks and normalizes a queue to create (`validate_queue_for_create`).
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for a queue that MLflow rejects.
    pub fn checked(kind: ReviewQueueType, name: &str, users: &[String], schema_ids: &[String]) -> Result<Self> {
        let users = normalized_users(users)?;
        let schema_ids = normalized_schema_ids(schema_ids)?;
        if kind == ReviewQueueType::Custom {
            return Ok(Self { kind, name: custom_queue_name(name)?, users, schema_ids });
        }
        let name = normalized_user(name);
        check_text(&name, "name", MAX_NAME_LENGTH)?;
        if !users.is_empty() && users != [name.as_str()] {
            return Err(Error::invalid(format!(
                "A user queue must have exactly one assigned user equal to its name; got name={} and users={}.",
                python::repr(&name),
                python::repr_list(&users)
            )));
        }
        if !schema_ids.is_empty() {
            return Err(Error::invalid(
                "A user queue cannot have explicitly-attached schemas; it resolves to all of the experiment's label \
                 schemas.",
            ));
        }
        Ok(Self { kind, users: vec![name.clone()], name, schema_ids })
    }
}

/// A review queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReviewQueue {
    /// The id.
    pub queue_id: String,
    /// The id of the experiment.
    pub experiment_id: String,
    /// The name.
    pub name: String,
    /// The type.
    pub queue_type: ReviewQueueType,
    /// The user who owns the queue, if the server has users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The creation time, in ms.
    pub creation_time_ms: i64,
    /// The time of the last change, in ms.
    pub last_update_time_ms: i64,
    /// The users that the queue is assigned to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// The ids of the queue's label schemas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schema_ids: Vec<String>,
}

impl ReviewQueue {
    /// Checks whether a user is assigned to the queue.
    #[must_use]
    pub fn has_user(&self, user: &str) -> bool {
        let user = normalized_user(user);
        self.users.contains(&user)
    }

    /// Checks whether a user owns the queue.
    #[must_use]
    pub fn is_owned_by(&self, user: &str) -> bool {
        let owner = self.created_by.as_deref().map(normalized_user);
        owner.is_some_and(|owner| !owner.is_empty() && owner == normalized_user(user))
    }
}

/// An item of a review queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReviewQueueItem {
    /// The id of the queue.
    pub queue_id: String,
    /// The type.
    pub item_type: ReviewItemType,
    /// The id of the trace.
    pub item_id: String,
    /// The status.
    pub status: ReviewStatus,
    /// The user who has set the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_by: Option<String>,
    /// When the status was set, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_time_ms: Option<i64>,
    /// When the item was added, in ms.
    pub creation_time_ms: i64,
    /// The time of the last change, in ms.
    pub last_update_time_ms: i64,
}

/// A response with one queue.
#[derive(Debug, Serialize)]
pub struct ReviewQueueResponse {
    /// The queue.
    pub review_queue: ReviewQueue,
}

/// The response of `review-queues/list`.
#[derive(Debug, Serialize)]
pub struct ReviewQueuesResponse {
    /// The queues, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub review_queues: Vec<ReviewQueue>,
    /// The token of the next page, which is empty on the last page.
    pub next_page_token: String,
}

/// The response of `review-queues/items/list`.
#[derive(Debug, Serialize)]
pub struct ReviewQueueItemsResponse {
    /// The items, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ReviewQueueItem>,
    /// The token of the next page, which is empty on the last page.
    pub next_page_token: String,
}

/// The response of `review-queues/items/add`.
#[derive(Debug, Serialize)]
pub struct AddedItemsResponse {
    /// The items, in the order of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ReviewQueueItem>,
}

/// The response of `review-queues/items/set-status`.
#[derive(Debug, Serialize)]
pub struct ReviewQueueItemResponse {
    /// The item.
    pub item: ReviewQueueItem,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn users_are_compared_in_lower_case() {
        assert_eq!(normalized_users(&texts(&[" Ann ", "ann", "BOB"])).unwrap(), ["ann", "bob"]);
        let many: Vec<_> = (0..11).map(|number| format!("user{number}")).collect();
        let message = normalized_users(&many).unwrap_err().message;
        assert_eq!(message, "A review queue can have at most 10 assigned users; got 11.");
        assert!(normalized_users(&texts(&[" "])).is_err());
    }

    #[test]
    fn a_user_queue_has_the_user_only() {
        let queue = |users: &[&str], schemas: &[&str]| {
            NewReviewQueue::checked(ReviewQueueType::User, " Ann", &texts(users), &texts(schemas))
        };
        let made = queue(&[], &[]).unwrap();
        assert_eq!((made.name.as_str(), made.users), ("ann", texts(&["ann"])));
        assert!(queue(&["ANN"], &[]).is_ok());
        let message = queue(&["bob"], &[]).unwrap_err().message;
        assert!(message.ends_with("got name='ann' and users=['bob']."), "{message}");
        assert!(queue(&[], &["ls-1"]).is_err());
    }

    #[test]
    fn names_of_custom_queues_are_bounded() {
        assert_eq!(custom_queue_name(" A b ").unwrap(), "A b");
        for name in ["", "  ", "Default", &"a".repeat(251)] {
            assert!(custom_queue_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_status_names_who_has_set_it() {
        assert_eq!(ReviewStatus::Complete.completed_by(Some(" Ann")).unwrap().as_deref(), Some("ann"));
        assert_eq!(ReviewStatus::Pending.completed_by(None).unwrap(), None);
        assert!(ReviewStatus::Pending.completed_by(Some("ann")).is_err());
        for user in [None, Some(" "), Some(&*"a".repeat(251))] {
            assert!(ReviewStatus::Declined.completed_by(user).is_err(), "{user:?}");
        }
    }

    #[test]
    fn items_are_bounded() {
        assert_eq!(normalized_item_ids(&texts(&[" tr-1", "tr-1", "tr-2"])).unwrap(), ["tr-1", "tr-2"]);
        let many: Vec<_> = (0..1_001).map(|number| format!("tr-{number}")).collect();
        for ids in [Vec::new(), texts(&[""]), texts(&[&"a".repeat(51)]), many] {
            assert!(normalized_item_ids(&ids).is_err());
        }
    }
}
