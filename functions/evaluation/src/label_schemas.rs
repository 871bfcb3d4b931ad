//! Endpoints for label schemas, which are the questions to reviewers of traces.

mod changes;
mod reads;

pub(crate) use changes::{Create, Delete, Modify};
pub(crate) use reads::{Get, GetByName, List};
