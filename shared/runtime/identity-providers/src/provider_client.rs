//! Signing in people at a provider.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};
use zeroize::Zeroizing;

use crate::claims::Claims;
use crate::client_secret::{ClientSecret, RefreshToken};
use crate::configuration::{Provider, Tenancy};
use crate::discovery::{ClientAuthentication, Discovery};
use crate::issuers::{FetchLimit, Issuers};
use crate::jwt::JwtKind;
use crate::person::Person;
use crate::provider_error::ProviderError;
use crate::token_response::{TokenError, TokenResponse};
use crate::transport::{ProviderRequest, TransportError};

/// The limit for requests to the provider's discovery document and keys.
const LIMIT: FetchLimit = FetchLimit::PerFiveSeconds;

/// A client of one provider.
#[derive(Clone, Debug)]
pub struct ProviderClient {
    provider: Arc<Provider>,
    secret: ClientSecret,
    issuers: Arc<Issuers>,
}

/// An attempt to sign in.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizeRequest<'a> {
    /// The URL to which the provider redirects the browser, built from a configured origin.
    pub redirect_uri: &'a str,
    /// The text that the provider returns unchanged.
    pub state: &'a str,
    /// The text that the ID token has to contain.
    pub nonce: &'a str,
    /// The PKCE verifier, of which only the SHA-256 is sent: 43 to 128 characters.
    pub code_verifier: &'a str,
}

/// What the provider has redirected the browser back with.
#[derive(Clone, Copy, Debug)]
pub struct CodeExchange<'a> {
    /// The code.
    pub code: &'a str,
    /// The parameter `iss`, if there was one.
    pub issuer: Option<&'a str>,
    /// The attempt's redirect URI.
    pub redirect_uri: &'a str,
    /// The attempt's nonce.
    pub nonce: &'a str,
    /// The attempt's PKCE verifier.
    pub code_verifier: &'a str,
}

/// A person who has signed in at the provider.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The identity.
    pub person: Person,
    /// The verified claims, with those of the userinfo endpoint that rules refer to.
    pub claims: Claims,
    /// The refresh token, if the provider has issued one.
    pub refresh_token: Option<RefreshToken>,
}

/// The outcome of presenting a refresh token.
#[derive(Clone, Debug)]
pub enum RefreshOutcome {
    /// The provider has confirmed the person.
    Renewed {
        /// The claims, as in [`SignedIn`].
        claims: Claims,
        /// The refresh token to present next. `None` if the presented one stays valid.
        refresh_token: Option<RefreshToken>,
    },
    /// The provider does not confirm the person any more, or refuses the token. The session ends.
    Refused(String),
    /// The refresh token was certainly not used: the request was not sent, or the provider refused
    /// this server and not the token. The token may be presented again.
    NotSent(String),
    /// The provider may have used the token, so it must not be presented again.
    Unavailable(String),
}

impl ProviderClient {
    /// Returns a client. Sends no request.
    #[must_use]
    pub fn new(provider: Provider, secret: ClientSecret, issuers: Arc<Issuers>) -> Self {
        Self { provider: Arc::new(provider), secret, issuers }
    }

    /// Returns the configuration of the provider.
    #[must_use]
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Returns the client secret, which seals refresh tokens.
    #[must_use]
    pub fn secret(&self) -> &ClientSecret {
        &self.secret
    }

    /// Returns the URL to which the browser is sent to sign in. Sends at most one request, for the
    /// discovery document.
    ///
    /// # Errors
    /// The discovery document cannot be fetched, or names no page for signing in.
    pub async fn authorize_url(&self, request: &AuthorizeRequest<'_>) -> Result<Url, ProviderError> {
        let discovery = self.discovery().await?;
        let endpoint = required(discovery.authorization_endpoint.as_ref(), "authorization_endpoint")?;
        let mut url = endpoint.clone();
        let challenge = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, request.code_verifier.as_bytes());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.provider.client_id)
            .append_pair("redirect_uri", request.redirect_uri)
            .append_pair("scope", &self.scope())
            .append_pair("state", request.state)
            .append_pair("nonce", request.nonce)
            .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256")
            .extend_pairs(&self.provider.authorize);
        Ok(url)
    }

    /// Exchanges the code of a sign-in for the claims of the person. Sends up to four requests: for
    /// the discovery document, the keys, the tokens and the userinfo.
    ///
    /// # Errors
    /// A [`ProviderError`]. The code cannot be presented again.
    pub async fn exchange_code(&self, exchange: &CodeExchange<'_>) -> Result<SignedIn, ProviderError> {
        let discovery = self.discovery().await?;
        check_callback_issuer(&discovery, exchange.issuer)?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", exchange.code),
            ("redirect_uri", exchange.redirect_uri),
            ("code_verifier", exchange.code_verifier),
        ];
        let response = self.token_request(&discovery, &fields)?;
        let response = self.issuers.transport().send(response).await?;
        let tokens = TokenResponse::parse(&response).map_err(|error| self.error_of(error))?;
        let id_token = tokens.id_token.as_deref().ok_or_else(|| {
            ProviderError::Misconfigured("it sent no ID token; check that the scope \"openid\" is allowed".to_owned())
        })?;
        let claims = self.verified(id_token, JwtKind::SignIn { nonce: exchange.nonce }).await?;
        let claims = self.with_userinfo(&discovery, claims, tokens.access_token.as_ref()).await?;
        let person = Person::of(&self.provider, &claims)?;
        Ok(SignedIn { person, claims, refresh_token: tokens.refresh_token })
    }

    /// Presents the refresh token of a person, once. Sends up to four requests, as
    /// [`Self::exchange_code`] does. Requests that may fail are sent before the token is presented,
    /// as far as possible.
    pub async fn refresh(&self, token: &RefreshToken, person: &Person) -> RefreshOutcome {
        let prepared = async {
            let discovery = self.discovery().await?;
            self.issuers.keys(&self.provider.issuer, LIMIT).await?;
            let fields = [("grant_type", "refresh_token"), ("refresh_token", token.expose())];
            let request = self.token_request(&discovery, &fields)?;
            Ok::<_, ProviderError>((discovery, request))
        };
        let (discovery, request) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => return RefreshOutcome::NotSent(error.to_string()),
        };
        let response = match self.issuers.transport().send(request).await {
            Ok(response) => response,
            Err(error @ TransportError::NotSent(_)) => return RefreshOutcome::NotSent(error.to_string()),
            Err(error) => return RefreshOutcome::Unavailable(error.to_string()),
        };
        let tokens = match TokenResponse::parse(&response) {
            Ok(tokens) => tokens,
            Err(error) => return self.refresh_error(error),
        };
        let claims = match self.renewed_claims(&discovery, &tokens).await {
            Ok(claims) => claims,
            Err(error @ (ProviderError::Unavailable(_) | ProviderError::Misconfigured(_))) => {
                return RefreshOutcome::Unavailable(error.to_string());
            }
            Err(error) => return RefreshOutcome::Refused(error.to_string()),
        };
        match Person::of(&self.provider, &claims) {
            Ok(found) if found == *person => {}
            Ok(_) => return RefreshOutcome::Refused("the provider sent a token of another person".to_owned()),
            Err(error) => return RefreshOutcome::Refused(error.to_string()),
        }
        RefreshOutcome::Renewed { claims, refresh_token: tokens.refresh_token.filter(|new| new != token) }
    }

    /// Returns the page at which a person signs out of the provider, if the provider has one. After
    /// that, the provider redirects to `return_to`, which has to be registered there.
    ///
    /// # Errors
    /// The discovery document cannot be fetched.
    pub async fn end_session_url(&self, return_to: &str) -> Result<Option<Url>, ProviderError> {
        let discovery = self.discovery().await?;
        let Some(mut url) = discovery.end_session_endpoint.clone() else { return Ok(None) };
        // Cognito has a name of its own for the parameter.
        let is_cognito = self.provider.issuer.starts_with("https://cognito-idp.");
        url.query_pairs_mut()
            .append_pair("client_id", &self.provider.client_id)
            .append_pair(if is_cognito { "logout_uri" } else { "post_logout_redirect_uri" }, return_to);
        Ok(Some(url))
    }

    /// Checks that the provider can be reached and is set up as far as can be checked without a
    /// person: it has the endpoints that a sign-in needs, and keys.
    ///
    /// # Errors
    /// A [`ProviderError`].
    pub async fn check(&self) -> Result<(), ProviderError> {
        check_provider(&self.provider, &self.issuers).await
    }

    async fn discovery(&self) -> Result<Arc<Discovery>, ProviderError> {
        self.issuers.discovery(&self.provider.issuer, LIMIT).await
    }

    fn scope(&self) -> String {
        let others = self.provider.scopes.iter().map(String::as_str).filter(|scope| *scope != "openid");
        std::iter::once("openid").chain(others).collect::<Vec<_>>().join(" ")
    }

    /// Returns a request to the token endpoint.
    fn token_request(&self, discovery: &Discovery, fields: &[(&str, &str)]) -> Result<ProviderRequest, ProviderError> {
        let endpoint = required(discovery.token_endpoint.as_ref(), "token_endpoint")?;
        let authentication = authentication(discovery)?;
        let (client, secret) = (&self.provider.client_id, self.secret.expose());
        let mut form = Serializer::new(String::new());
        form.extend_pairs(fields);
        let authorization = match authentication {
            ClientAuthentication::Form => {
                form.append_pair("client_id", client).append_pair("client_secret", secret);
                None
            }
            ClientAuthentication::Header => {
                // Both parts are encoded as in forms (RFC 6749, section 2.3.1).
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = Zeroizing::new(format!("{}:{}", encoded(client), encoded(secret)));
                Some(Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes()))))
            }
        };
        Ok(ProviderRequest { url: endpoint.clone(), authorization, form: Some(Zeroizing::new(form.finish())) })
    }

    async fn verified(&self, token: &str, kind: JwtKind<'_>) -> Result<Claims, ProviderError> {
        self.issuers.verify(&self.provider.issuer, token, (&self.provider.client_id, kind), LIMIT).await
    }

    /// Returns the claims after a renewal. Providers need not send an ID token then; the userinfo
    /// endpoint takes its place.
    async fn renewed_claims(&self, discovery: &Discovery, tokens: &TokenResponse) -> Result<Claims, ProviderError> {
        if let Some(id_token) = &tokens.id_token {
            let claims = self.verified(id_token, JwtKind::Renewal).await?;
            return self.with_userinfo(discovery, claims, tokens.access_token.as_ref()).await;
        }
        match (&discovery.userinfo_endpoint, &tokens.access_token, Tenancy::of(&self.provider.issuer)) {
            (Some(endpoint), Some(access_token), Tenancy::Single) => {
                Ok(self.userinfo(endpoint, access_token).await?.with("iss", &discovery.issuer))
            }
            _ => Err(ProviderError::Misconfigured(
                "it sent no ID token for a refresh token; check that the scope \"openid\" is allowed".to_owned(),
            )),
        }
    }

    /// Adds claims of the userinfo endpoint, if a rule refers to a claim that the ID token does not
    /// contain, as with GitLab's groups.
    async fn with_userinfo(
        &self,
        discovery: &Discovery,
        claims: Claims,
        access_token: Option<&Zeroizing<String>>,
    ) -> Result<Claims, ProviderError> {
        let is_missing = |claim: &str| claims.get(claim).is_none() && !claims.overflows(claim);
        let is_complete = !self.provider.claims().any(is_missing);
        let (Some(endpoint), Some(access_token), false) = (&discovery.userinfo_endpoint, access_token, is_complete)
        else {
            return Ok(claims);
        };
        let others = self.userinfo(endpoint, access_token).await?;
        // Without this check, another person's access token could be exchanged for this one's.
        if others.text("sub").is_none() || others.text("sub") != claims.text("sub") {
            return Err(ProviderError::Refused("the userinfo endpoint describes another person".to_owned()));
        }
        Ok(claims.or(others))
    }

    async fn userinfo(&self, endpoint: &Url, access_token: &str) -> Result<Claims, ProviderError> {
        let authorization = Some(Zeroizing::new(format!("Bearer {access_token}")));
        let request = ProviderRequest { url: endpoint.clone(), authorization, form: None };
        let response = self.issuers.transport().send(request).await?;
        let body = &crate::issuers::successful(endpoint.as_str(), &response)?.body;
        let claims: Map<String, Value> = serde_json::from_slice(body).map_err(|_| {
            ProviderError::Misconfigured(format!("{endpoint} did not send a JSON object; switch off signed userinfo"))
        })?;
        Ok(Claims::from(claims))
    }

    fn error_of(&self, error: TokenError) -> ProviderError {
        match error {
            TokenError::Client(reason) => ProviderError::Misconfigured(self.client_refused(&reason)),
            TokenError::Grant(reason) => ProviderError::Refused(reason),
            TokenError::Throttled(reason) | TokenError::Unavailable(reason) => ProviderError::Unavailable(reason),
        }
    }

    fn refresh_error(&self, error: TokenError) -> RefreshOutcome {
        match error {
            TokenError::Client(reason) => RefreshOutcome::NotSent(self.client_refused(&reason)),
            TokenError::Grant(reason) => RefreshOutcome::Refused(reason),
            TokenError::Throttled(reason) => RefreshOutcome::NotSent(reason),
            TokenError::Unavailable(reason) => RefreshOutcome::Unavailable(reason),
        }
    }

    fn client_refused(&self, reason: &str) -> String {
        format!(
            "it refused the client id or the client secret of \"{}\" ({reason}); replace the secret",
            self.provider.name
        )
    }
}

/// Checks that a provider can be reached, without a client secret, and that it has the endpoints
/// that a sign-in needs, and keys.
///
/// # Errors
/// A [`ProviderError`].
pub async fn check_provider(provider: &Provider, issuers: &Issuers) -> Result<(), ProviderError> {
    let discovery = issuers.discovery(&provider.issuer, LIMIT).await?;
    required(discovery.authorization_endpoint.as_ref(), "authorization_endpoint")?;
    required(discovery.token_endpoint.as_ref(), "token_endpoint")?;
    authentication(&discovery)?;
    if issuers.keys(&provider.issuer, LIMIT).await?.is_empty() {
        return Err(ProviderError::Misconfigured(format!("{} has no key that can be used", discovery.jwks_uri)));
    }
    Ok(())
}

fn required<'a>(endpoint: Option<&'a Url>, name: &str) -> Result<&'a Url, ProviderError> {
    endpoint.ok_or_else(|| ProviderError::Misconfigured(format!("its discovery document has no {name}")))
}

fn authentication(discovery: &Discovery) -> Result<ClientAuthentication, ProviderError> {
    discovery.authentication.ok_or_else(|| {
        ProviderError::Misconfigured(
            "it supports neither client_secret_post nor client_secret_basic at its token endpoint".to_owned(),
        )
    })
}

/// Checks that the provider that has redirected back is the one to which the browser was sent (RFC
/// 9207).
fn check_callback_issuer(discovery: &Discovery, issuer: Option<&str>) -> Result<(), ProviderError> {
    let is_template = discovery.issuer.contains("{tenantid}");
    match issuer {
        Some(issuer) if issuer != discovery.issuer && !is_template => {
            Err(ProviderError::Refused("the response came from another provider".to_owned()))
        }
        None if discovery.names_itself => {
            Err(ProviderError::Refused("the response does not name the provider that it came from".to_owned()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
