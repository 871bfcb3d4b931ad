//! What a domain is: one function of the stack, its routes, and how a process mounts them. The
//! indexer is a function too, without routes and so no domain.
//!
//! Each function crate has a constant [`Domain`]. The crate `domains` lists all of them. The local
//! server, the template, the generated pages and the walks of the tests over all routes follow from
//! that list. A Lambda mounts one domain ([`lambda::run`]), the local server mounts all
//! ([`mount`]). The code of a domain cannot tell the difference.
//!
//! A cold start reads the environment, makes the store, and looks at the layout of the table
//! (`shared/storage/entities/src/layout.rs`). It refuses a table that a later version has migrated. So
//! a connection to DynamoDB is open before the first call. Only the cold start of tracking writes:
//! in an empty table the default experiment, and with it the number of the layout.
//!
//! A [`Setting`] is a variable that only some functions get. Others follow from their paths.
//!
//! | variable | meaning |
//! |---|---|
//! | `ACCESS_MODE` | `none`; `basic` for users; `both` for the two APIs. Without it, no function starts |
//! | `ACCESS_TABLE_NAME`, `DEFAULT_PERMISSION`, `SIGNED_USER` | with users: their table, the level of callers without a grant, the user of a principal of AWS that nobody mapped |
//! | `CREATORS` | with users: the role that creating experiments and models takes |
//! | `WORKSPACES` | `on` or `off` |
//! | `TABLE_NAME` | the table |
//! | `ARTIFACT_ROOT` | where new experiments keep artifacts |
//! | `ARTIFACTS_DESTINATION` | where the server keeps files of `mlflow-artifacts:/` |

mod api;
mod function;
pub mod lambda;
mod mount;
mod surroundings;

pub use api::{Api, Domain, Endpoint, Mounted, endpoints};
pub use function::{
    BucketRight, Function, FunctionUrl, Indexes, KmsKey, Package, Queue, QueueRole, Secret, Setting, TableActions,
    TableRights,
};
pub use mount::mount;
pub use surroundings::{Surroundings, UiFiles};

/// Why a domain cannot be mounted.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
