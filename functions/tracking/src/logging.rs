//! Endpoints of `runs/…` that log data to a run.

mod links;
mod metrics;
mod model;
mod tags;

pub(crate) use links::{LogInputs, LogOutputs};
pub(crate) use metrics::{LogBatch, LogMetric};
pub(crate) use model::LogModel;
pub(crate) use tags::{DeleteTag, LogParam, SetTag};
