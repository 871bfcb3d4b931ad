//! Single sign-on, without the table: the configuration of identity providers, requests to them,
//! and what is read from the tokens that they issue.
//!
//! - `configuration/` contains the types of the configuration, which is written in TOML, validated,
//!   and stored as JSON.
//! - [`Issuers`] caches discovery documents and keys, and limits how often they are fetched.
//! - [`verify`] checks JWTs. It is the only place where claims of a token become [`Claims`].
//! - [`ProviderClient`] signs in people and renews their sessions; [`machine_rule`] finds the rule
//!   that a machine's JWT satisfies.
//! - [`Person`] and [`Memberships`] are what the rules of a provider make of claims.
//!
//! All requests are sent over a [`ProviderTransport`], only to issuers of the configuration and to
//! the URLs in their discovery documents. Begin reading with `configuration/mod.rs`, then
//! `provider_client.rs`.
//!
//! This is a crate of its own because the function `auth` applies the configuration and the program
//! validates it, and because no other function may contain its dependencies.

mod claims;
mod client_secret;
mod configuration;
mod discovery;
mod issuers;
mod jwt;
mod keys;
mod machines;
mod memberships;
mod named_role;
mod person;
mod provider_client;
mod provider_error;
mod signatures;
#[cfg(test)]
mod test_issuer;
mod token_response;
mod transport;
mod urls;

pub use claims::{Claims, ClaimsError};
pub use client_secret::{
    ClientSecret, MAX_REFRESH_TOKEN_BYTES, RefreshToken, RefreshTokenPlace, SecretTextError, open, seal,
};
pub use configuration::{
    AuthorizeParameters, ClaimRule, Configuration, ConfigurationError, MAX_CONFIGURATION_BYTES, MachineRule, NewUsers,
    Provider, RoleRule, RoleTarget,
};
pub use discovery::Discovery;
pub use issuers::{FetchLimit, Issuers};
pub use jwt::{JwtError, JwtExpectations, JwtKind, MAX_JWT_BYTES, unverified_issuer, verify};
pub use keys::KeySet;
pub use machines::{MachineError, machine_rule};
pub use memberships::Memberships;
pub use named_role::NamedRole;
pub use person::Person;
pub use provider_client::{AuthorizeRequest, CodeExchange, ProviderClient, RefreshOutcome, SignedIn, check_provider};
pub use provider_error::ProviderError;
pub use transport::{
    HttpsTransport, MAX_RESPONSE_BYTES, ProviderRequest, ProviderResponse, ProviderTransport, TransportError,
};
