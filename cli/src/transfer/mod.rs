//! Moving data in and out: `import` reads a database of MLflow's own server, `export` writes one,
//! and `copy` moves a whole table.
//!
//! | module | what it is for |
//! |---|---|
//! | [`database`] | SQL drivers: rows of SQLite, PostgreSQL, and MySQL or MariaDB, from one snapshot |
//! | [`source`] | an MLflow database at any schema from 2.0 to 3.18 |
//! | [`copy`] | the command that moves a whole table |
//! | [`import`], [`export`] | the commands, and what all kinds of entities share |
//! | [`artifact_check`] | `import --check-artifacts` |
//! | [`experiments`], [`runs`], … | one kind of entity: its record, and how it is read and written on both sides |

mod artifact_check;
pub(crate) mod copy;
mod database;
mod evaluation_datasets;
mod experiments;
pub(crate) mod export;
pub(crate) mod import;
mod logged_models;
mod mcp_servers;
mod registered_models;
mod reviews;
mod runs;
mod scorers;
mod skills;
mod source;
mod traces;
mod users;
mod webhooks;
mod workspaces;
