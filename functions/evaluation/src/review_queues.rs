//! Endpoints for review queues and their items.

mod items;
mod lifecycle;
mod queue_access;
mod reads;

pub(crate) use items::{AddItems, ListItems, RemoveItems, SetStatus};
pub(crate) use lifecycle::{Create, Delete, GetOrCreateUser, Modify};
pub(crate) use reads::{Get, GetByName, List};
