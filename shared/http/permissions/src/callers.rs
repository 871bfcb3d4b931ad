//! Identification of callers by their credentials.

use std::sync::Arc;

use access::{AuthorizerItems, Caller, Credentials, Identity, RequestCredentials, RequestHead, Restriction, User};
use key_schema::access_rows;
use key_schema::attributes::{USER, USER_ID};
use mlflow_api::{Error, Result, UserName};
use table::{Item, TableKey};

use crate::identification::Identification;
use crate::request_credentials::credentials;
use crate::sessions_and_tokens::{Token, is_session_of, session_key, token_key};
use crate::user_authorizer::UserAuthorizer;
use crate::users::Account;

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
        let restriction = self.restriction_of(sent, proof, account.as_ref()).await?;
        let account = account.filter(|account| !account.is_disabled);
        let Some((restriction, account)) = restriction.zip(account) else { return Err(invalid_credentials(sent)) };
        Ok(Identification::Caller(identity_of(sent, Caller::User(account.user.into()), restriction)))
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

    /// Returns the restrictions of the credentials, or `None` if they do not belong to the user of
    /// this account.
    async fn restriction_of(
        &self,
        sent: &RequestCredentials,
        proof: Option<&Item>,
        account: Option<&Account>,
    ) -> Result<Option<Restriction>> {
        Ok(match &sent.credentials {
            Credentials::Password(name, password) => {
                let stored = account.and_then(|account| account.password.as_ref());
                let is_right = self.passwords().check(name, stored, password.clone(), sent.client_address).await?;
                is_right.then(Restriction::default)
            }
            Credentials::Session(..) => {
                let is_open = proof
                    .zip(account)
                    .is_some_and(|(session, account)| is_session_of(session, &account.user, account.password.as_ref()));
                is_open.then(Restriction::default)
            }
            Credentials::Token(..) => {
                let token = proof.map(Token::of).transpose()?.filter(|token| !token.is_over());
                let is_of = |token: &Token| account.is_some_and(|account| account.user.id == token.user_id);
                token.filter(is_of).map(|token| token.restriction)
            }
            Credentials::Signature(_) => {
                let mapping = proof.filter(|mapping| mapping.has(USER_ID));
                let is_of = account
                    .is_some_and(|account| mapping.is_none_or(|mapping| mapping.get(USER_ID) == Some(account.user.id)));
                is_of.then(Restriction::default)
            }
        })
    }
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
