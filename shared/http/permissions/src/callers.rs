//! Identification of callers by their credentials.

use std::sync::Arc;

use access::{Arrived, Caller, Credentials, Identity, Read, Restriction, Sent, User};
use key_schema::access_rows;
use key_schema::attributes::{USER, USER_ID};
use mlflow_api::{Error, Result, UserName};
use table::{Item, TableKey};

use crate::basic::Basic;
use crate::found::Found;
use crate::sent::credentials;
use crate::signed::{Token, is_session_of, session_key, token_key};
use crate::users::Account;

impl Basic {
    /// Returns the credentials of a request. Those that the gateway has verified take precedence
    /// over any credentials in headers.
    pub(crate) fn credentials(&self, arrived: &Arrived) -> Option<Credentials> {
        match arrived.entry.gateway.as_ref().filter(|_| self.signed.is_some()) {
            Some(signed) => signed.principal().map(Credentials::Signature),
            None => credentials(arrived),
        }
    }

    /// Returns the keys of the items that identify the owner of the credentials: the item of the
    /// user that they name or last belonged to, and the item that proves them.
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
    pub(crate) async fn caller_of(&self, sent: &Arc<Sent>, known: Option<&User>, read: &Read) -> Result<Found> {
        let proof = self.proof_key(&sent.credentials).and_then(|key| read.get(&key));
        let user = match &sent.credentials {
            Credentials::Signature(principal) => match self.mapped(proof) {
                Mapped::User(user) if known.is_some_and(|known| known.name == user) => user,
                Mapped::User(user) => return Ok(Found::User(user)),
                Mapped::Everything => {
                    let caller = Caller::Principal(principal.as_str().into());
                    return Ok(Found::Caller(found(sent, caller, Restriction::default())));
                }
                Mapped::Nobody => return Err(refused(sent)),
            },
            Credentials::Password(user, _) | Credentials::Session(user, _) | Credentials::Token(user, _) => {
                user.clone()
            }
        };
        let account = read.get(&self.user_key(&user)).map(Account::of).transpose()?;
        let restriction = self.restriction_of(sent, proof, account.as_ref()).await?;
        let account = account.filter(|account| !account.is_disabled);
        let Some((restriction, account)) = restriction.zip(account) else { return Err(refused(sent)) };
        Ok(Found::Caller(found(sent, Caller::User(account.user.into()), restriction)))
    }

    /// Returns what a principal is mapped to, from its item.
    fn mapped(&self, item: Option<&Item>) -> Mapped {
        let unmapped = self.signed.as_ref().and_then(|signed| signed.unmapped.clone());
        match (item, unmapped) {
            (Some(item), _) => item.get(USER).and_then(UserName::named).map_or(Mapped::Nobody, Mapped::User),
            (None, Some(user)) => Mapped::User(user),
            (None, None) => Mapped::Everything,
        }
    }

    /// Returns the restrictions of the credentials, or `None` if they do not belong to the user of
    /// this account.
    async fn restriction_of(
        &self,
        sent: &Sent,
        proof: Option<&Item>,
        account: Option<&Account>,
    ) -> Result<Option<Restriction>> {
        Ok(match &sent.credentials {
            Credentials::Password(name, password) => {
                let stored = account.and_then(|account| account.password.as_ref());
                let is_right = self.passwords().check(name, stored, password.clone(), sent.from).await?;
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

/// What an AWS principal is mapped to.
enum Mapped {
    User(UserName),
    /// The gateway has admitted the principal, and it is not mapped.
    Everything,
    Nobody,
}

/// Returns the error for invalid credentials and logs it.
fn refused(sent: &Sent) -> Error {
    tracing::warn!(target: "audit", event = "not signed in", with = ?sent.credentials, from = ?sent.from);
    sent.refusal.clone()
}

fn found(sent: &Arc<Sent>, caller: Caller, restriction: Restriction) -> Identity {
    Identity { caller, restriction, sent: Some(Arc::clone(sent)), ..Identity::somebody() }
}
