//! Signatures of requests to S3.

use std::time::Duration;

use runtime::aws::Signer;

use crate::bucket::address;
use crate::bucket::failure::Result;

/// Adds a signature to a URL, which is then valid for this method, key and query until it expires.
/// The client has to send the given headers. The body is not signed.
pub(crate) fn presign(
    signer: &Signer<'_>,
    method: &str,
    mut url: String,
    headers: &[(&str, String)],
    expiration: Duration,
) -> Result<String> {
    let parameters = signer.query_parameters(method, &url, headers, expiration)?;
    address::append(&mut url, parameters.iter().map(|(name, value)| (*name, value.as_ref())));
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use aws_credential_types::Credentials;
    use runtime::aws::AwsService;

    use super::*;

    /// Returns the signer of the examples in AWS's documentation of S3 signatures: their
    /// credentials, region and time.
    fn example() -> Signer<'static> {
        let credentials = Credentials::builder()
            .access_key_id("AKIAIOSFODNN7EXAMPLE")
            .secret_access_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
            .provider_name("example")
            .build();
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(380_376);
        Signer { service: AwsService::S3, credentials, region: "us-east-1", now }
    }

    /// The `GET` example in "Authenticating Requests: Using Query Parameters".
    #[test]
    fn a_presigned_url_is_that_of_the_published_example() {
        let url = "https://examplebucket.s3.amazonaws.com/test.txt".to_owned();
        let signed = presign(&example(), "GET", url, &[], Duration::from_hours(24)).unwrap();
        let (url, query) = signed.split_once('?').unwrap();
        assert_eq!(url, "https://examplebucket.s3.amazonaws.com/test.txt");
        let mut parameters: Vec<_> = query.split('&').collect();
        parameters.sort_unstable();
        assert_eq!(
            parameters,
            [
                "X-Amz-Algorithm=AWS4-HMAC-SHA256",
                "X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request",
                "X-Amz-Date=20130524T000000Z",
                "X-Amz-Expires=86400",
                "X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
                "X-Amz-SignedHeaders=host",
            ]
        );
    }

    /// The examples in "Authenticating Requests: Using the Authorization Header": `GET` of an
    /// object, `PUT` of an object whose name has to be encoded, and `GET` of a list.
    #[test]
    fn signed_headers_are_those_of_the_published_examples() {
        for (method, path, headers, body, signature) in [
            (
                "GET",
                "test.txt",
                vec![("range", "bytes=0-9".to_owned())],
                "",
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "test%24file.text",
                vec![
                    ("date", "Fri, 24 May 2013 00:00:00 GMT".to_owned()),
                    ("x-amz-storage-class", "REDUCED_REDUNDANCY".to_owned()),
                ],
                "Welcome to Amazon S3.",
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                "GET",
                "?max-keys=2&prefix=J",
                vec![],
                "",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let url = format!("https://examplebucket.s3.amazonaws.com/{path}");
            let signed = example().headers(method, &url, &headers, body.as_bytes()).unwrap();
            let (_, authorization) = signed.iter().find(|(name, _)| name == "authorization").unwrap();
            assert!(authorization.ends_with(&format!("Signature={signature}")), "{path}: {authorization}");
        }
    }
}
