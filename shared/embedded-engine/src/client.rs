//! Clients of the AWS SDK that need no account.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Builder, Credentials, Region, SharedHttpClient, StalledStreamProtectionConfig,
};

/// A client whose requests go to `http_client`, whatever they are addressed to.
#[must_use]
pub fn client_over(http_client: SharedHttpClient) -> Client {
    Client::from_conf(base().http_client(http_client).build())
}

/// A client for an engine that listens at `url`, such as [`Server::url`](crate::Server::url).
#[must_use]
pub fn client_for_endpoint(url: &str) -> Client {
    Client::from_conf(base().endpoint_url(url).build())
}

/// The engine checks no signature, but a request without one is refused.
///
/// Retries are the caller's, who knows what a repeated write means; and no watch is kept on slow answers, so that a call
/// held back for a test stays held.
fn base() -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "embedded-engine"))
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
}
