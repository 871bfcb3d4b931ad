//! The sections of `docs/capacity.md`, one file for what is too long to stand in `generated.rs`.

pub(crate) mod inputs;
pub(crate) mod logged_models;
pub(crate) mod searches;
