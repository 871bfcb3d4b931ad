//! Signed requests to AWS services that are used without an SDK: S3, Lambda, KMS and Systems
//! Manager.
//!
//! Only a few operations of each service are needed, and building its SDK would take longer than
//! building the rest of the functions that use it. [`SignedClient`] sends requests to all of them
//! except S3. Requests to S3 are signed and retried differently, so the crate `artifact-store` sends them
//! itself, and uses only parts of this module.

mod client;
mod credentials;
mod environment;
mod error;
mod lambda;
mod retries;
mod signature;
#[cfg(test)]
mod tests;

pub use client::{AwsResponse, RetryPolicy, SignedClient, SignedRequest};
pub use credentials::{CachedCredentials, chain};
pub use environment::{AwsEnvironment, AwsService};
pub use error::AwsError;
pub use lambda::{LambdaClient, MAX_ASYNC_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES};
pub use retries::RetryAttempts;
pub use signature::Signer;
