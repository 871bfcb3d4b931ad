//! Domains: the functions of the stack with their routes, and how a process mounts them. The
//! indexer is a function too, but has no routes and is therefore not a domain.
//!
//! Each function crate has a constant [`Domain`]. The crate `domains` lists all of them. The local
//! server, the template, the generated pages and the tests that iterate over all routes are derived
//! from that list. A Lambda mounts one domain ([`lambda::run`]); the local server mounts all of
//! them ([`mount`]). The code of a domain cannot tell the difference.
//!
//! A cold start reads the environment, creates the store, and checks the layout of the table
//! (`shared/storage/entities/src/layout.rs`). It fails for a table that a later version has
//! migrated. As a result, a connection to DynamoDB is open before the first call. Only the cold
//! start of tracking writes: in an empty table, it creates the default experiment together with the
//! layout's version.
//!
//! An [`EnvironmentSetting`] is an environment variable that only some functions receive. The other
//! variables follow from the declaration of the function.
//!
//! | variable | meaning |
//! |---|---|
//! | `ACCESS_MODE` | `none`; `basic` for users; `both` for the two APIs. Without it, no function starts |
//! | `ACCESS_TABLE_NAME`, `DEFAULT_PERMISSION`, `SIGNED_USER` | with users: the access table, the level of callers without a grant, the user that unmapped IAM principals act as |
//! | `CREATORS` | with users: the role that is required to create experiments, registered models, prompts and MCP servers |
//! | `PASSWORDS`, `PASSWORD_ADMINISTRATORS` | with users: whether users can sign in with passwords (`on` or `off`); administrators who always can, separated by commas |
//! | `SIGN_ON_SECRETS` | path in Parameter Store of the client secrets of identity providers, for `auth` only |
//! | `WORKSPACES` | `on` or `off` |
//! | `TABLE_NAME` | the data table |
//! | `ARTIFACT_ROOT` | location of the artifacts of new experiments |
//! | `ARTIFACTS_DESTINATION` | location of files below `mlflow-artifacts:/` |

mod api;
mod environment;
mod function;
mod gateway;
pub mod lambda;
mod log_lines;
mod mount;
mod offloaded_responses;

pub use api::{Domain, DomainApi, EndpointInfo, MountedDomain, UnavailableEndpoint, endpoints};
pub use environment::{Environment, SIGN_ON_SECRETS_VARIABLE, UiFiles, outbound_policy};
pub use function::{
    BucketRight, EnvironmentSetting, Function, FunctionUrl, Indexes, KmsKey, Package, Queue, QueueRole,
    SecretParameter, TableActions, TableRights,
};
pub use log_lines::log_lines;
pub use mount::mount;

/// The reason why a domain cannot be mounted.
pub type MountFailure = Box<dyn std::error::Error + Send + Sync>;
