//! Lookup of the caller's AWS credentials.

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};

use crate::Failure;

/// Environment variable with the access key. If it is not set, the environment provides no
/// credentials.
pub(crate) const KEY_VARIABLE: &str = "AWS_ACCESS_KEY_ID";

/// Kinds of AWS profiles that are supported, for the error message. Profiles of `aws login` are not
/// supported.
const SUPPORTED_PROFILES: &str =
    if cfg!(feature = "standalone") { "keys, roles, single sign-on and credential_process" } else { "keys and roles" };

/// Returns the default AWS credentials provider, which searches the environment, profiles and the
/// machine's role.
///
/// # Errors
/// No credentials for requests to this URL are found, or the profile is of an unsupported kind.
pub(crate) async fn find_provider(config: &SdkConfig, url: &str) -> Result<SharedCredentialsProvider, Failure> {
    let provider = config.credentials_provider().ok_or("this program was built without credentials")?;
    if let Err(error) = provider.provide_credentials().await {
        tracing::debug!(?error, "no credentials");
        return Err(format!(
            "no AWS credentials found for {url}. They are read from the environment ({KEY_VARIABLE}), the profile \
             (AWS_PROFILE; {SUPPORTED_PROFILES}), a web identity token, or the role of the container or machine. For other \
             profiles, `aws configure export-credentials --format env` prints them for the environment ({})",
            with_causes(&error)
        )
        .into());
    }
    Ok(provider)
}

/// Formats an error together with the chain of its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
