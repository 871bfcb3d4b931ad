//! Access to the evaluation domain's data in the table. There is one folder per resource, and the
//! names of methods start with the resource.

mod evaluation_dataset;
mod scorer;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;

pub(crate) use evaluation_dataset::column;
pub use evaluation_dataset::{DatasetReference, DatasetSearch, NewDataset};
pub use scorer::ScorerName;
pub(crate) use scorer::check_scorer;
pub use store::Store;
