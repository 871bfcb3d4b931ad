//! Workspaces of items.

use key_schema::rows;
use mlflow_api::{Error, ErrorCode, Workspace};
use table::{Condition, Item, Reason, Write, text};

use crate::attributes::{GOES_TO, WORKSPACE};

/// Records an item's workspace, unless it is the default one.
#[must_use]
pub fn in_workspace(item: Item, workspace: &Workspace) -> Item {
    if *workspace == Workspace::default() { item } else { item.with(WORKSPACE, text(workspace.as_str())) }
}

/// Returns the workspace that the value of [`WORKSPACE`] names. A missing attribute stands for the
/// default workspace.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the value is not a valid workspace name.
pub fn workspace_named(attribute: Option<&str>) -> mlflow_api::Result<Workspace> {
    attribute.map_or_else(|| Ok(Workspace::default()), Workspace::stored)
}

/// Returns the part of a creating transaction that checks that the workspace exists and is not
/// being deleted. Returns `None` for the default workspace, which cannot be deleted. Two write
/// units.
#[must_use]
pub fn is_open(workspace: &Workspace) -> Option<Write> {
    if *workspace == Workspace::default() {
        return None;
    }
    let key = rows::Workspace::key(&workspace.as_str().into());
    Some(Write::Check(key, Condition::item_exists().and(Condition::Missing(GOES_TO.into()))))
}

/// Returns the error for creating something in a workspace that is being deleted, if the
/// transaction was refused because of the workspace.
#[must_use]
pub fn if_closed(workspace: &Workspace, reason: Option<&Reason>) -> Option<Error> {
    matches!(reason, Some(Reason::Refused(_)))
        .then(|| Error::new(ErrorCode::Aborted, format!("Workspace '{workspace}' is being deleted.")))
}

#[cfg(test)]
mod tests {
    use key_schema::Key;

    use super::*;

    #[test]
    fn an_item_says_its_workspace_unless_it_is_the_default() {
        for name in ["default", "team-a"] {
            let workspace = Workspace::parse(name).unwrap();
            let item = in_workspace(Item::new(Key { pk: "P".to_owned(), sk: "S".to_owned() }), &workspace);
            assert_eq!(workspace_named(item.get(WORKSPACE)).unwrap(), workspace);
        }
        assert!(workspace_named(Some("no workspace")).is_err());
    }
}
