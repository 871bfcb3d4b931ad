//! Label schemas, which are the questions to reviewers of traces.
//!
//! A schema's key contains its creation time and its id, so a page of schemas is a range, newest
//! first. Every experiment has a default schema, which is not stored and is the last one in lists.

mod changes;
mod items;
mod read;

pub use changes::LabelSchemaChange;
pub use items::{NewLabelSchema, name_key, name_row, schema_key, schema_of};
