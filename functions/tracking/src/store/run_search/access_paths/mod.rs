//! Step 7: carries out a plan, along one of the access paths.

mod full_scan;
mod list_gathering;
mod list_walk;
mod newest_join;
mod path_execution;
mod run_ids;
