//! Endpoints of `datasets/…`: evaluation datasets.

mod experiments;
mod lifecycle;
mod records;

pub(crate) use experiments::{AddExperiments, Experiments, RemoveExperiments};
pub(crate) use lifecycle::{Create, Delete, DeleteTag, Get, Search, SetTags};
pub(crate) use records::{DeleteRecords, MergeRecords, Records};
