//! Endpoints of `scorers/…`. Access to a scorer is guarded by its experiment.

mod online;
mod read;
mod write;

pub(crate) use online::{OnlineConfigs, SetOnlineConfig};
pub(crate) use read::{Get, List, Versions};
pub(crate) use write::{Delete, Register};
