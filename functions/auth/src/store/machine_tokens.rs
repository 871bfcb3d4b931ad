//! Tokens that machines obtain in exchange for JWTs.

use access::Restriction;
use key_schema::attributes::{EXPIRES, ISSUED_BY, USER_ID};
use key_schema::{Key, access_rows};
use mlflow_api::{Error, ErrorCode, Result, UserName};
use permissions::{Account, Token, UserSecret};
use table::{Condition, Item, Query};

use super::Store;
use super::integer_ids::IdKind;
use super::times::now_seconds;
use super::tokens::token_row;

/// Maximum number of unexpired tokens of machines per user.
pub const MAX_MACHINE_TOKENS: usize = 1_000;
/// Maximum lifetime of a machine's token in minutes.
const MAX_MINUTES: u32 = 60;
/// Maximum number of expired tokens that one call deletes.
const MAX_DELETIONS: usize = 100;

impl Store {
    /// Creates a token for a machine, by the rule with this name. Returns `None` if the user does not
    /// exist or is disabled. The token is not listed with those that the user has created, and does
    /// not depend on a provider's confirmation of the user. Takes four requests, with about one read
    /// unit per 15 tokens of the user, and one more request per 25 expired tokens that are deleted.
    ///
    /// # Errors
    /// Returns `RESOURCE_EXHAUSTED` if the user has [`MAX_MACHINE_TOKENS`], and
    /// `INVALID_PARAMETER_VALUE` for a lifetime of 0 or more than 60 minutes.
    pub async fn machine_token_create(
        &self,
        rule: &str,
        user: &UserName,
        restriction: Restriction,
        minutes: u32,
    ) -> Result<Option<(UserSecret, Token)>> {
        if minutes == 0 || minutes > MAX_MINUTES {
            return Err(Error::invalid(format!("A token of a machine expires after 1 to {MAX_MINUTES} minutes.")));
        }
        let account = Account::find(&self.access, user).await?.filter(|account| !account.is_disabled);
        let Some(account) = account else { return Ok(None) };
        let id = account.user.id;
        let tokens = self.access.query(Query::of(access_rows::Token::all(user))).await?;
        let now = now_seconds();
        let of_machines = tokens.iter().filter(|token| token.has(ISSUED_BY));
        let (valid, expired): (Vec<_>, Vec<_>) =
            of_machines.partition(|token| token.get(EXPIRES).is_some_and(|end| now < end));
        if valid.iter().filter(|token| token.get(USER_ID) == Some(id)).count() >= MAX_MACHINE_TOKENS {
            return Err(Error::new(
                ErrorCode::ResourceExhausted,
                format!(
                    "The user already has {MAX_MACHINE_TOKENS} tokens of machines. Try again when some have expired."
                ),
            ));
        }
        let expired: Vec<Key> = expired.into_iter().filter_map(Item::key).take(MAX_DELETIONS).collect();
        self.access.write_many(Vec::new(), &expired).await?;
        let secret = UserSecret::new(user.clone());
        let token = Token {
            id: self.next_id(IdKind::Tokens).await?,
            user_id: id,
            digest: secret.digest(),
            name: rule.to_owned(),
            restriction,
            creation_time: runtime::clock::now_ms(),
            issued_by: Some(rule.to_owned()),
            expires: Some(now + i64::from(minutes) * 60),
        };
        self.access.put(token_row(user, &token), &Condition::Always).await?;
        tracing::info!(target: "audit", event = "token exchanged", of = ?user.as_str(), rule, token = token.id);
        Ok(Some((secret, token)))
    }
}
