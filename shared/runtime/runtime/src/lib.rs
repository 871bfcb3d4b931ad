//! What code needs from the process that it runs in: time and long computations ([`clock`]), and
//! HTTPS clients with root certificates ([`https`]).

pub mod clock;
pub mod https;
