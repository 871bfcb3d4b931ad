//! Issues, which are problems that traces exhibit.
//!
//! An issue has a compact row, which searches read, and a row with its long texts: description,
//! root causes and metadata. The number of traces that exhibit the issue is in a third row.
//! Transactions that change assessments of traces update this row without checking whether the
//! issue exists.

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
pub(crate) use search::invalid_issue_token;
