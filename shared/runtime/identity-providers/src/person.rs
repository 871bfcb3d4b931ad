//! Who has signed in.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::claims::{Claims, ClaimsError};
use crate::configuration::{Provider, Tenancy, expected_issuer, is_entra};

/// A person, as a provider identifies them. Names and email addresses change, and may pass to
/// other people; this pair does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Person {
    /// The issuer of the provider, exactly as in the claim `iss`. For Entra, the issuer of the
    /// person's tenant.
    pub issuer: String,
    /// The claim `sub`. For Entra, the claim `oid`, because `sub` differs by application.
    pub subject: String,
}

impl Person {
    /// Returns the person whom the claims of a verified token identify, if the provider admits the
    /// person.
    ///
    /// # Errors
    /// A claim that identifies the person is missing, or the provider does not admit the person
    /// ([`Provider::check_admission`]).
    pub fn of(provider: &Provider, claims: &Claims) -> Result<Self, ClaimsError> {
        provider.check_admission(claims)?;
        let issuer = claims.identifier("iss")?;
        let subject = if is_entra(&provider.issuer) {
            if let Tenancy::Any { template, .. } = Tenancy::of(&provider.issuer) {
                // `verify` has checked this for the token. Claims of other sources are not verified.
                if expected_issuer(&template, claims.text("tid")).as_deref() != Some(issuer) {
                    return Err(ClaimsError::OtherTenant);
                }
            }
            claims.identifier("oid")?
        } else {
            claims.identifier("sub")?
        };
        Ok(Self { issuer: issuer.to_owned(), subject: subject.to_owned() })
    }

    /// Returns the digest that identifies the person in keys, and to which sessions are bound:
    /// SHA-256 in URL-safe Base64, 43 characters.
    #[must_use]
    pub fn digest(&self) -> String {
        // The length of the issuer separates the two parts unambiguously.
        let both = format!("{}:{}{}", self.issuer.len(), self.issuer, self.subject);
        URL_SAFE_NO_PAD.encode(digest(&SHA256, both.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_confused() {
        let digest =
            |issuer: &str, subject: &str| Person { issuer: issuer.to_owned(), subject: subject.to_owned() }.digest();
        assert_eq!(digest("https://a", "b").len(), 43);
        assert_ne!(digest("https://a", "b"), digest("https://ab", ""));
        assert_ne!(digest("https://a", "1:b"), digest("https://a1:", "b"));
    }
}
