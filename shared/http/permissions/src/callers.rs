//! Identification of callers by their credentials.

use std::sync::Arc;

use access::{AuthorizerItems, Caller, Credentials, Identity, RequestCredentials, RequestHead, Restriction, User};
use key_schema::access_rows;
use key_schema::attributes::{USER, USER_ID};
use mlflow_api::{Error, Result, UserName};
use table::{Item, TableKey};

use crate::identification::Identification;
use crate::request_credentials::credentials;
use crate::sessions_and_tokens::{SessionState, Token, session_key, session_state, token_key};
use crate::user_authorizer::UserAuthorizer;
use crate::users::Account;

/// Header of a response that tells the page's script what happened to its session.
pub const SESSION_HEADER: &str = "mlflow-session";
/// Value of [`SESSION_HEADER`] if the session has to be renewed, and the request can be repeated
/// afterwards.
pub const RENEW: &str = "renew";

impl UserAuthorizer {
    /// Returns the credentials of a request. A signature that the gateway has verified takes
    /// precedence over credentials in headers.
    pub(crate) fn credentials(&self, arrived: &RequestHead) -> Option<Credentials> {
        match arrived.connection.gateway.as_ref().filter(|_| self.signed_requests.is_some()) {
            Some(signed) => signed.principal().map(Credentials::Signature),
            None => credentials(arrived),
        }
    }

    /// Returns the keys of the items that identify the owner of the credentials: the item of the
    /// user, and the item that proves the credentials. The user is the one that the credentials
    /// name, or `known`, the user that they belonged to when they were last checked.
    pub(crate) fn keys_of(&self, credentials: &Credentials, known: Option<&User>) -> Vec<TableKey> {
        let user = credentials.user().or(known.map(|user| &user.name));
        user.map(|user| self.user_key(user)).into_iter().chain(self.proof_key(credentials)).collect()
    }

    fn user_key(&self, user: &UserName) -> TableKey {
        self.in_access(access_rows::User::key(user))
    }

    /// Returns the key of the item that proves the credentials, if that is not the user's own item.
    fn proof_key(&self, credentials: &Credentials) -> Option<TableKey> {
        let key = match credentials {
            Credentials::Password(..) => return None,
            Credentials::Session(user, digest) => session_key(user, digest),
            Credentials::Token(user, digest) => token_key(user, digest),
            Credentials::Signature(principal) => access_rows::Principal::key(&principal.as_str().into()),
        };
        Some(self.in_access(key))
    }

    /// Identifies the caller by the credentials of a request and the items of
    /// [`keys_of`](Self::keys_of). A password is hashed, unless this process has verified it
    /// before.
    ///
    /// # Errors
    /// The refusal that was stored with the credentials, if they are not valid.
    pub(crate) async fn identify_caller(
        &self,
        sent: &Arc<RequestCredentials>,
        known: Option<&User>,
        read: &AuthorizerItems,
    ) -> Result<Identification> {
        let proof = self.proof_key(&sent.credentials).and_then(|key| read.get(&key));
        let user = match &sent.credentials {
            Credentials::Signature(principal) => match self.principal_mapping(proof) {
                PrincipalMapping::User(user) if known.is_some_and(|known| known.name == user) => user,
                PrincipalMapping::User(user) => return Ok(Identification::User(user)),
                PrincipalMapping::Everything => {
                    let caller = Caller::Principal(principal.as_str().into());
                    return Ok(Identification::Caller(identity_of(sent, caller, Restriction::default())));
                }
                PrincipalMapping::Nobody => return Err(invalid_credentials(sent)),
            },
            Credentials::Password(user, _) | Credentials::Session(user, _) | Credentials::Token(user, _) => {
                user.clone()
            }
        };
        let account = read.get(&self.user_key(&user)).map(Account::of).transpose()?;
        let validity = self.validity(sent, proof, account.as_ref()).await?;
        let Some(account) = account.filter(|account| !account.is_disabled) else {
            return Err(invalid_credentials(sent));
        };
        match validity {
            Validity::Valid(restriction) => {
                Ok(Identification::Caller(identity_of(sent, Caller::User(account.user.into()), restriction)))
            }
            Validity::Overdue => {
                tracing::info!(target: "audit", event = "session overdue", with = ?sent.credentials, from = ?sent.client_address);
                Err(sent.refusal.clone().with_header(SESSION_HEADER, RENEW))
            }
            Validity::Invalid => Err(invalid_credentials(sent)),
        }
    }

    /// Returns what a principal is mapped to: the user in the principal's item, or, if there is no
    /// item, the user for unmapped principals or full access.
    fn principal_mapping(&self, item: Option<&Item>) -> PrincipalMapping {
        let unmapped = self.signed_requests.as_ref().and_then(|signed| signed.unmapped_user.clone());
        match (item, unmapped) {
            (Some(item), _) => {
                item.get(USER).and_then(UserName::named).map_or(PrincipalMapping::Nobody, PrincipalMapping::User)
            }
            (None, Some(user)) => PrincipalMapping::User(user),
            (None, None) => PrincipalMapping::Everything,
        }
    }

    /// Returns whether the credentials belong to the user of this account. A password that the
    /// policy does not allow is checked like that of a user without a password, so that the
    /// response takes as long.
    async fn validity(
        &self,
        sent: &RequestCredentials,
        proof: Option<&Item>,
        account: Option<&Account>,
    ) -> Result<Validity> {
        let valid_if =
            |is_valid: bool| if is_valid { Validity::Valid(Restriction::default()) } else { Validity::Invalid };
        Ok(match &sent.credentials {
            Credentials::Password(name, password) => {
                let allowed = account.filter(|account| self.password_policy().allows(&account.user));
                let stored = allowed.and_then(|account| account.password.as_ref());
                valid_if(self.passwords().check(name, stored, password.clone(), sent.client_address).await?)
            }
            Credentials::Session(..) => {
                let Some((session, account)) = proof.zip(account) else { return Ok(Validity::Invalid) };
                match session_state(session, account, self.password_policy()) {
                    SessionState::Open => Validity::Valid(Restriction::default()),
                    SessionState::Overdue => Validity::Overdue,
                    SessionState::Ended => Validity::Invalid,
                }
            }
            Credentials::Token(..) => {
                let token = proof.map(Token::of).transpose()?;
                let is_valid = |token: &Token| account.is_some_and(|account| token.is_valid_for(account));
                token.filter(is_valid).map_or(Validity::Invalid, |token| Validity::Valid(token.restriction))
            }
            Credentials::Signature(_) => {
                let mapping = proof.filter(|mapping| mapping.has(USER_ID));
                valid_if(
                    account.is_some_and(|account| {
                        mapping.is_none_or(|mapping| mapping.get(USER_ID) == Some(account.user.id))
                    }),
                )
            }
        })
    }
}

/// Whether credentials are valid for the user that they name.
enum Validity {
    /// The credentials are valid, with these restrictions.
    Valid(Restriction),
    /// The credentials are a session that has to be renewed with its provider first.
    Overdue,
    /// The credentials are not valid.
    Invalid,
}

/// What an AWS principal is mapped to: a user, full access, or no rights at all.
enum PrincipalMapping {
    User(UserName),
    /// Full access, because the gateway has admitted the principal, and neither an item nor a
    /// setting maps it to a user.
    Everything,
    Nobody,
}

/// Returns the error for invalid credentials and logs it.
fn invalid_credentials(sent: &RequestCredentials) -> Error {
    tracing::warn!(target: "audit", event = "not signed in", with = ?sent.credentials, from = ?sent.client_address);
    sent.refusal.clone()
}

fn identity_of(sent: &Arc<RequestCredentials>, caller: Caller, restriction: Restriction) -> Identity {
    Identity { caller, restriction, request_credentials: Some(Arc::clone(sent)), ..Identity::anonymous() }
}
