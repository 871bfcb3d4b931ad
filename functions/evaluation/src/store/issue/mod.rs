//! Issues, which are problems that traces exhibit.
//!
//! An issue has a compact row, which searches read, and a row with its long texts: description, root
//! causes and metadata. The number of an issue's traces is a row of its own, which the transactions
//! that change assessments update, so that it does not matter whether the issue exists.

mod changes;
mod creation;
mod items;
mod reads;
mod search;

pub use changes::IssueChange;
pub use creation::{IssueItems, NewIssue};
pub use items::part_key;
pub use reads::read_issue;
pub use search::IssueSearch;
