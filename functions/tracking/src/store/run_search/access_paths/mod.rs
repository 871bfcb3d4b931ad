//! Step 7: carries out a plan, along one of the access paths.

mod carry_out;
mod gather;
mod ids;
mod newest;
mod walk;
mod whole;
