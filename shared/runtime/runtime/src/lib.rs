//! Services of the process that code runs in: time and long computations ([`clock`]), HTTPS clients
//! with root certificates ([`https`]), and signed requests to AWS services ([`aws`]).

pub mod aws;
pub mod clock;
pub mod https;
