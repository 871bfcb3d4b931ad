//! Request signatures (AWS Signature Version 4).

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningInstructions,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;

use crate::aws::environment::AwsService;
use crate::aws::error::AwsError;

/// The service, the credentials, the region and the time of a signature.
#[derive(Debug)]
pub struct Signer<'a> {
    /// The service.
    pub service: AwsService,
    /// The credentials.
    pub credentials: Credentials,
    /// The region.
    pub region: &'a str,
    /// The time.
    pub now: SystemTime,
}

impl Signer<'_> {
    /// Returns the headers that sign a request. The signature covers all of the request's headers
    /// and its body.
    ///
    /// # Errors
    /// The URL or a header is invalid.
    pub fn headers(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Result<Vec<(String, String)>, AwsError> {
        let mut settings = self.settings();
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let signed = self.sign(method, url, headers, SignableBody::Bytes(body), settings)?;
        Ok(signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns the query parameters that sign a URL, which is then valid for this method, path and
    /// query until it expires. The client has to send the given headers. The body is not signed.
    ///
    /// # Errors
    /// The URL or a header is invalid.
    pub fn query_parameters(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        expiration: Duration,
    ) -> Result<Vec<(&'static str, Cow<'static, str>)>, AwsError> {
        let mut settings = self.settings();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(expiration);
        let signed = self.sign(method, url, headers, SignableBody::UnsignedPayload, settings)?;
        Ok(signed.into_parts().1)
    }

    fn sign(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: SignableBody<'_>,
        settings: SigningSettings,
    ) -> Result<SigningInstructions, AwsError> {
        let identity = Identity::from(self.credentials.clone());
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(self.region)
            .name(self.service.name())
            .time(self.now)
            .settings(settings)
            .build()
            .map_err(AwsError::broken)?
            .into();
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let request = SignableRequest::new(method, url, headers, body).map_err(AwsError::broken)?;
        Ok(sign(request, &params).map_err(AwsError::broken)?.into_parts().0)
    }

    /// Returns the settings of the signature. S3 signs the path as it is sent. Other services
    /// percent-encode the path once more and normalize it.
    fn settings(&self) -> SigningSettings {
        let mut settings = SigningSettings::default();
        if self.service == AwsService::S3 {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        }
        settings
    }
}
