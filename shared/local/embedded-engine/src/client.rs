//! Clients of the AWS SDK that need no account.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Builder, Credentials, Region, SharedHttpClient, StalledStreamProtectionConfig,
};

use crate::AccessKey;

/// A client whose requests go to `http_client`, whatever they are addressed to. It signs nothing:
/// to sign is a sixth of what the client computes, and nobody in this process looks at it.
#[must_use]
pub fn client_over(http_client: SharedHttpClient) -> Client {
    Client::from_conf(base().allow_no_auth().http_client(http_client).build())
}

/// A client for an engine that listens at `url` and takes any access key, as DynamoDB Local does.
#[must_use]
pub fn client_for_endpoint(url: &str) -> Client {
    Client::from_conf(
        base()
            .endpoint_url(url)
            .credentials_provider(Credentials::new("local", "local", None, None, "embedded-engine"))
            .build(),
    )
}

/// A client for an engine that listens at `url` and has this access key.
#[must_use]
pub fn client_with_key(url: &str, key: &AccessKey) -> Client {
    Client::from_conf(base().endpoint_url(url).credentials_provider(key.credentials()).build())
}

/// The caller retries, as it knows whether a write may be repeated. No watch is kept on slow
/// answers, so that a call held back for a test stays held.
fn base() -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
}
