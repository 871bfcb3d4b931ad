//! The region, the credentials and the endpoints that the environment configures.

use aws_config::BehaviorVersion;

use crate::aws::credentials::CachedCredentials;
use crate::aws::error::AwsError;

/// Region that is used if a custom endpoint is configured without a region.
const DEFAULT_REGION: &str = "us-east-1";

/// An AWS service that is used without an SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwsService {
    /// Key management.
    Kms,
    /// Lambda.
    Lambda,
    /// S3, whose signatures differ from those of other services.
    S3,
    /// Systems Manager, for its Parameter Store.
    Ssm,
}

impl AwsService {
    /// Returns the name of the service in signatures and host names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kms => "kms",
            Self::Lambda => "lambda",
            Self::S3 => "s3",
            Self::Ssm => "ssm",
        }
    }

    /// Returns the environment variable that overrides the endpoint of the service.
    fn endpoint_variable(self) -> &'static str {
        match self {
            Self::Kms => "AWS_ENDPOINT_URL_KMS",
            Self::Lambda => "AWS_ENDPOINT_URL_LAMBDA",
            Self::S3 => "AWS_ENDPOINT_URL_S3",
            Self::Ssm => "AWS_ENDPOINT_URL_SSM",
        }
    }
}

/// How requests to a service are sent from this process.
#[derive(Debug)]
pub struct AwsEnvironment {
    /// The region.
    pub region: String,
    /// The endpoint, if it is not that of the region: `AWS_ENDPOINT_URL_<SERVICE>`, or else
    /// `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// The credentials.
    pub credentials: CachedCredentials,
}

impl AwsEnvironment {
    /// Reads the environment. Sends no requests except those for credentials.
    ///
    /// # Errors
    /// No region or no credentials are configured.
    pub async fn load(service: AwsService) -> Result<Self, AwsError> {
        let config = aws_config::defaults(BehaviorVersion::latest());
        let config = match crate::https::client().map_err(AwsError::broken)? {
            Some(client) => config.http_client(client),
            None => config,
        };
        let config = config.load().await;
        let of_service = std::env::var(service.endpoint_variable()).ok().filter(|endpoint| !endpoint.is_empty());
        let endpoint = of_service.or_else(|| config.endpoint_url().map(str::to_owned));
        let region =
            config.region().map(ToString::to_string).or_else(|| endpoint.as_ref().map(|_| DEFAULT_REGION.to_owned()));
        let region = region.ok_or_else(|| AwsError::broken("no AWS region is configured"))?;
        let credentials =
            config.credentials_provider().ok_or_else(|| AwsError::broken("no AWS credentials are configured"))?;
        Ok(Self { region, endpoint, credentials: CachedCredentials::new(credentials) })
    }
}

/// Returns the domain of AWS's host names in a region, for example `amazonaws.com`.
#[must_use]
pub(crate) fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}
