//! Scorers and their versions.
//!
//! A scorer's row contains its id and a copy of its latest version, so that listing scorers and
//! reading the latest version take one request. The keys of versions contain the scorer's id.
//! Therefore the versions of a deleted scorer never belong to a later scorer with the same name.

mod delete;
mod items;
mod latest_versions;
mod list_size;
mod online_configs;
mod payload_validation;
mod read;
mod register;
mod scorer_row;

pub use items::{StoredScorerItems, online_config_item};
pub(crate) use register::check_scorer;
pub use scorer_row::{ScorerName, header_key, part_key};
