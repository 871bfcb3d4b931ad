//! Endpoints for issues, which are problems that traces exhibit.

mod changes;
mod reads;

pub(crate) use changes::{Create, Modify};
pub(crate) use reads::{Get, Search};
