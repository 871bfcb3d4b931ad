//! Signed requests to AWS services that are used without an SDK: S3, Lambda and KMS.
//!
//! An SDK for each service would take longer to build than the rest of the functions that use it,
//! for two or three operations. [`SignedClient`] sends such requests. The bucket, whose requests
//! differ in how they are signed and retried, uses the parts of this module only.

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
