//! Signatures (AWS Signature Version 4) for requests that are not sent by an SDK.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;

use crate::Failure;

/// Service, region and time of a signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signature<'a> {
    pub(crate) service: &'a str,
    pub(crate) region: &'a str,
    pub(crate) time: SystemTime,
}

/// Returns the headers that sign a request. All given headers are signed, and `host` is added.
pub(crate) fn headers<'a>(
    credentials: Credentials,
    signature: Signature<'_>,
    method: &'a str,
    url: &'a str,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    body: &'a [u8],
) -> Result<Vec<(String, String)>, Failure> {
    let identity = Identity::from(credentials);
    let mut settings = SigningSettings::default();
    if signature.service == "s3" {
        // S3 differs from other services in that its paths are signed without further encoding, and
        // a digest of the body is required.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    }
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(signature.region)
        .name(signature.service)
        .time(signature.time)
        .settings(settings)
        .build()?
        .into();
    let request = SignableRequest::new(method, url, headers, SignableBody::Bytes(body))?;
    let (instructions, _) = sign(request, &params)?.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}
