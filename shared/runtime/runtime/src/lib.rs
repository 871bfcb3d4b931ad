//! Services of the process that code runs in: time and long computations ([`clock`]), and HTTPS
//! clients with root certificates ([`https`]).

pub mod clock;
pub mod https;
