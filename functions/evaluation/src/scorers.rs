//! Endpoints of `scorers/…`. Access to a scorer depends on permissions on its experiment.

mod online_configs;
mod registration;
mod scorer_reads;

pub(crate) use online_configs::{OnlineConfigs, SetOnlineConfig};
pub(crate) use registration::{Delete, Register};
pub(crate) use scorer_reads::{Get, List, Versions};
