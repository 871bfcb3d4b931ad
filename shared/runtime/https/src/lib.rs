//! Clients for AWS's services.
//!
//! A machine has a list of the authorities that it trusts. An empty container has none. With the
//! feature `built-in-roots`, the program has Mozilla's list in it, and uses it where the machine
//! has no list. The machine's own list comes first, since it may name the authority of a proxy.
//! The table, the bucket and the search for credentials all ask here, so they trust the same
//! authorities.

#[cfg(feature = "built-in-roots")]
mod built_in;

use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpClient, SharedHttpConnector};

/// A client for an SDK, if it needs another than the SDK's own.
///
/// # Errors
/// The roots in the program cannot be read.
pub fn client() -> Result<Option<SharedHttpClient>, String> {
    let Some(context) = context()? else { return Ok(None) };
    Ok(Some(Builder::new().tls_provider(provider()).tls_context(context).build_https()))
}

/// A connector for requests that no SDK sends.
///
/// # Errors
/// The roots in the program cannot be read.
pub fn connector() -> Result<SharedHttpConnector, String> {
    let builder = Connector::builder().connector_settings(HttpConnectorSettings::builder().build());
    let builder = builder.tls_provider(provider());
    let builder = match context()? {
        Some(context) => builder.tls_context(context),
        None => builder,
    };
    Ok(SharedHttpConnector::new(builder.build()))
}

fn provider() -> Provider {
    Provider::Rustls(CryptoMode::AwsLc)
}

#[cfg(feature = "built-in-roots")]
use built_in::context;

#[cfg(not(feature = "built-in-roots"))]
#[expect(clippy::unnecessary_wraps, reason = "with the roots in the program, it can fail")]
fn context() -> Result<Option<aws_smithy_http_client::tls::TlsContext>, String> {
    Ok(None)
}
