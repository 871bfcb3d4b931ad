//! The AWS credentials of the caller.

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};

use crate::Failure;

/// The variable without which the environment has no credentials.
pub(crate) const KEY_VARIABLE: &str = "AWS_ACCESS_KEY_ID";

/// What a profile may have. `aws login` is not among it.
const PROFILES: &str =
    if cfg!(feature = "standalone") { "keys, roles, single sign-on and credential_process" } else { "keys and roles" };

/// The provider of the credentials that any AWS program finds.
///
/// # Errors
/// There are no credentials for this URL. Unsupported options are reported, too.
pub(crate) async fn found(config: &SdkConfig, url: &str) -> Result<SharedCredentialsProvider, Failure> {
    let provider = config.credentials_provider().ok_or("this program was built without credentials")?;
    if let Err(error) = provider.provide_credentials().await {
        tracing::debug!(?error, "no credentials");
        return Err(format!(
            "no AWS credentials are found for {url}. They are looked for in the environment ({KEY_VARIABLE}), in the profile \
             (AWS_PROFILE; {PROFILES}), in a web identity token, and at the container's or the machine's role. For other \
             profiles, `aws configure export-credentials --format env` prints them for the environment ({})",
            with_causes(&error)
        )
        .into());
    }
    Ok(provider)
}

/// The text of an error, and those of its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
