//! AWS SDK clients that need no account.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Builder, Credentials, Region, SharedHttpClient, StalledStreamProtectionConfig,
};

use crate::AccessKey;

/// Returns a client that sends all requests to `http_client`, whatever their address. The client
/// does not sign requests, because signing takes a sixth of its CPU time and nothing in this
/// process verifies signatures.
#[must_use]
pub fn client_over(http_client: SharedHttpClient) -> Client {
    Client::from_conf(base().allow_no_auth().http_client(http_client).build())
}

/// Returns a client for an engine that listens at `url` and accepts any access key, like DynamoDB
/// Local.
#[must_use]
pub fn client_for_endpoint(url: &str) -> Client {
    Client::from_conf(
        base()
            .endpoint_url(url)
            .credentials_provider(Credentials::new("local", "local", None, None, "embedded-engine"))
            .build(),
    )
}

/// Returns a client for an engine that listens at `url` and has this access key.
#[must_use]
pub fn client_with_key(url: &str, key: &AccessKey) -> Client {
    Client::from_conf(base().endpoint_url(url).credentials_provider(key.credentials()).build())
}

/// Returns the common configuration. Retries are left to the caller, which knows whether a write
/// can be repeated. Stalled-stream protection is off, so that a call that a test holds back is not
/// aborted.
fn base() -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
}
