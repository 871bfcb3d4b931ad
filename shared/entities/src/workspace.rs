//! Workspaces of items.

use mlflow_api::Workspace;
use table::{Item, text};

use crate::attributes::WORKSPACE;

/// The item as one of a workspace: it says which, unless that is the default one.
#[must_use]
pub fn in_workspace(item: Item, workspace: &Workspace) -> Item {
    if *workspace == Workspace::default() { item } else { item.with(WORKSPACE, text(workspace.as_str())) }
}

/// The workspace that an item names with [`WORKSPACE`], by the text of that attribute; the default one where it has none.
///
/// # Errors
/// `INVALID_PARAMETER_VALUE`, if it is no name of a workspace.
pub fn workspace_named(attribute: Option<&str>) -> mlflow_api::Result<Workspace> {
    attribute.map_or_else(|| Ok(Workspace::default()), Workspace::parse)
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
            assert_eq!(workspace_named(item.text(WORKSPACE)).unwrap(), workspace);
        }
        assert!(workspace_named(Some("no workspace")).is_err());
    }
}
