//! A DynamoDB endpoint other than the embedded engine, and the credentials for it.

use std::net::IpAddr;
use std::str::FromStr;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::Client;
use http::Uri;

use crate::Failure;
use crate::credentials::{self, KEY_VARIABLE};
use crate::feed::StreamClient;

/// URL of a server that implements DynamoDB's protocol, such as DynamoDB itself.
#[derive(Clone, Debug)]
pub(crate) struct DynamoDbEndpoint {
    pub(crate) url: String,
    host: String,
}

impl FromStr for DynamoDbEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Option<Uri> = text.parse().ok();
        let uri = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none());
        let host = uri.as_ref().and_then(Uri::host).filter(|host| !host.is_empty());
        let host = host.ok_or("expected a URL such as https://dynamodb.eu-central-1.amazonaws.com")?;
        Ok(Self { url: text.to_owned(), host: host.trim_matches(['[', ']']).to_lowercase() })
    }
}

impl DynamoDbEndpoint {
    /// Returns whether the server is on this machine.
    pub(crate) fn is_here(&self) -> bool {
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        self.host == "localhost" || self.host.parse().is_ok_and(is_loopback)
    }

    /// Returns a client with the credentials of the AWS default chain. If the environment has no
    /// access key, a client for a server on this machine gets made-up credentials. Servers
    /// elsewhere never get made-up credentials.
    ///
    /// # Errors
    /// No credentials or no region are configured, or the profile is of an unsupported kind.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        if self.has_made_up_keys() {
            return Ok(embedded_engine::client_for_endpoint(&self.url));
        }
        self.config().await?;
        Ok(table::client(Some(self.url.clone())).await?)
    }

    /// Returns a client for the stream of a table on this server, with the same credentials as
    /// [`client`](Self::client).
    ///
    /// # Errors
    /// No credentials or no region are configured.
    pub(crate) async fn stream(&self, table: &str) -> Result<StreamClient, Failure> {
        if self.has_made_up_keys() {
            let keys = Credentials::builder().access_key_id("local").secret_access_key("local").provider_name("local");
            let config = SdkConfig::builder()
                .region(Region::new("local"))
                .credentials_provider(SharedCredentialsProvider::new(keys.build()));
            return StreamClient::new(&self.url, &config.build(), table);
        }
        StreamClient::new(&self.url, &self.config().await?, table)
    }

    fn has_made_up_keys(&self) -> bool {
        self.is_here() && std::env::var_os(KEY_VARIABLE).is_none_or(|key| key.is_empty())
    }

    /// Loads the AWS configuration, and checks that it has a region and credentials.
    async fn config(&self) -> Result<SdkConfig, Failure> {
        let config = aws_config::defaults(BehaviorVersion::latest());
        let config = match runtime::https::client()? {
            Some(client) => config.http_client(client),
            None => config,
        };
        let config = config.load().await;
        if config.region().is_none() {
            return Err(format!("no AWS region is configured for {}: set AWS_REGION", self.url).into());
        }
        credentials::find_provider(&config, &self.url).await?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_keys_are_for_this_machine_only() {
        for (url, is_here) in [
            ("http://127.0.0.1:8000", true),
            ("http://localhost:8000", true),
            ("http://LOCALHOST", true),
            ("http://[::1]:8000/", true),
            ("http://127.9.9.9", true),
            ("https://dynamodb.eu-central-1.amazonaws.com", false),
            ("http://localhost.evil.example:8000", false),
            ("http://127.0.0.1.evil.example", false),
            ("http://localhost@evil.example", false),
            ("http://10.0.0.1:8000", false),
            ("http://0.0.0.0:8000", false),
            ("http://dynamodb:8000", false),
        ] {
            assert_eq!(url.parse::<DynamoDbEndpoint>().unwrap().is_here(), is_here, "{url}");
        }
        for url in
            ["", "dynamodb.eu-central-1.amazonaws.com", "127.0.0.1:8000", "ftp://a", "https://", "/x", "http://a?b"]
        {
            assert!(url.parse::<DynamoDbEndpoint>().is_err(), "{url}");
        }
    }
}
