//! API Gateway's limit of requests: a token bucket, as its documentation describes it.

use std::cell::Cell;

use runtime::clock::Moment;

use crate::{Failure, Result};

const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Limit of the requests that the API accepts.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimit {
    /// Requests per second.
    pub rate: f64,
    /// Maximum number of requests that are accepted in one burst, before the rate applies.
    pub burst: f64,
}

impl RequestLimit {
    /// Returns the limit of a stack with the default parameters of `template.yaml`.
    ///
    /// # Errors
    /// The template lacks a parameter.
    pub fn of_template() -> Result<Self> {
        Ok(Self { rate: default_of("RequestRate")?, burst: default_of("RequestBurst")? })
    }
}

/// Returns the default of a parameter of the template.
fn default_of(parameter: &str) -> Result<f64> {
    let (_, after) =
        TEMPLATE.split_once(&format!("\n  {parameter}:\n")).ok_or_else(|| Failure::from(format!("no {parameter}")))?;
    let default = after.lines().find_map(|line| line.strip_prefix("    Default: "));
    Ok(default.ok_or_else(|| Failure::from(format!("{parameter} has no default")))?.parse()?)
}

/// The gateway in front of the functions.
pub(crate) struct Gateway {
    limit: RequestLimit,
    /// Number of requests that the token bucket would have accepted at the time `since`.
    left: Cell<f64>,
    since: Cell<Moment>,
}

impl Gateway {
    pub(crate) fn new(limit: RequestLimit) -> Self {
        Self { limit, left: Cell::new(limit.burst), since: Cell::new(Moment::now()) }
    }

    /// Returns whether a request is accepted now.
    pub(crate) fn accepts(&self) -> bool {
        let passed = self.since.replace(Moment::now()).age().as_secs_f64();
        let left = (self.left.get() + passed * self.limit.rate).min(self.limit.burst);
        let is_accepted = left >= 1.0;
        self.left.set(if is_accepted { left - 1.0 } else { left });
        is_accepted
    }
}
