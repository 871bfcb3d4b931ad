//! API tokens of users.

use access::Restriction;
use key_schema::access_rows;
use key_schema::attributes::{CREATION_TIME, EXPERIMENT, EXPIRES, ISSUED_BY, NAME, ONLY, TOKEN, USER_ID};
use mlflow_api::{Error, Result, UserName};
use permissions::{Token, UserSecret, token_key};
use table::{Condition, Item, Query, number, text};

use super::Store;
use super::integer_ids::IdKind;

/// Maximum number of unexpired tokens per user.
pub const MAX_TOKENS: usize = 100;
/// Maximum length of a token's name in bytes.
const MAX_NAME_BYTES: usize = 200;
/// Maximum lifetime in days of a token that expires.
const MAX_DAYS: u32 = 3_660;

/// A token to be created.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Name of the token, chosen by its user.
    pub name: String,
    /// Scope of the token.
    pub restriction: Restriction,
    /// Lifetime in days. `None` for a token that does not expire.
    pub days: Option<u32>,
}

impl Store {
    /// Creates a token. Its secret is returned only once. Takes four requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist; `INVALID_PARAMETER_VALUE` for
    /// an invalid name or lifetime, or if the user has the maximum number of tokens.
    pub async fn token_create(&self, user: &UserName, new: NewToken) -> Result<(UserSecret, Token)> {
        // The name and the lifetime are checked before anything is read.
        check_token_name(&new.name)?;
        check_days(new.days)?;
        let id = self.user_get(user).await?.user.id;
        let (secret, token, item) = self.token_item(user, id, new).await?;
        self.access.put(item, &Condition::Always).await?;
        Ok((secret, token))
    }

    /// Makes a token of the user with this id, and its item, which the caller has to write. Takes two
    /// requests.
    pub(super) async fn token_item(
        &self,
        user: &UserName,
        id: u32,
        new: NewToken,
    ) -> Result<(UserSecret, Token, Item)> {
        let name = check_token_name(&new.name)?.to_owned();
        check_days(new.days)?;
        if self.tokens_of(user, id).await?.len() >= MAX_TOKENS {
            return Err(Error::invalid(format!("The user already has {MAX_TOKENS} tokens. Revoke one first.")));
        }
        let secret = UserSecret::new(user.clone());
        let now = runtime::clock::now_ms();
        let token = Token {
            id: self.next_id(IdKind::Tokens).await?,
            user_id: id,
            digest: secret.digest(),
            name,
            restriction: new.restriction,
            creation_time: now,
            issued_by: None,
            expires: new.days.map(|days| now / 1_000 + i64::from(days) * 86_400),
        };
        let item = token_row(user, &token);
        Ok((secret, token, item))
    }

    /// Returns the tokens of a user that have not expired, in the order of their creation, without
    /// those of machines. Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist.
    pub async fn tokens(&self, user: &UserName) -> Result<Vec<Token>> {
        let id = self.user_get(user).await?.user.id;
        self.tokens_of(user, id).await
    }

    async fn tokens_of(&self, user: &UserName, id: u32) -> Result<Vec<Token>> {
        let items = self.access.query(Query::of(access_rows::Token::all(user))).await?;
        let mut tokens = items.iter().map(Token::of).collect::<Result<Vec<_>>>()?;
        tokens.retain(|token| token.user_id == id && token.issued_by.is_none() && !token.is_over());
        tokens.sort_by_key(|token| token.id);
        Ok(tokens)
    }

    /// Revokes a token in every process. Takes three requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user or the token does not exist.
    pub async fn token_revoke(&self, user: &UserName, id: u32) -> Result<()> {
        let tokens = self.tokens(user).await?;
        let token = tokens.iter().find(|token| token.id == id);
        let token = token.ok_or_else(|| Error::not_found(format!("There is no token with the id {id}.")))?;
        Ok(self.access.delete(&token_key(user, &token.digest), &Condition::Always).await?)
    }
}

/// Checks the name of a token, and returns it without surrounding blanks.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if it is empty, too long, or contains control characters.
pub(super) fn check_token_name(name: &str) -> Result<&str> {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!("The name of a token must have 1 to {MAX_NAME_BYTES} bytes.")));
    }
    Ok(name)
}

fn check_days(days: Option<u32>) -> Result<()> {
    if days.is_some_and(|days| days == 0 || days > MAX_DAYS) {
        return Err(Error::invalid(format!("A token expires after 1 to {MAX_DAYS} days, or never.")));
    }
    Ok(())
}

/// Returns the item of a token.
pub(super) fn token_row(user: &UserName, token: &Token) -> Item {
    let mut item = Item::new(token_key(user, &token.digest))
        .with(TOKEN, number(token.id))
        .with(USER_ID, number(token.user_id))
        .with(NAME, text(token.name.as_str()))
        .with(ONLY, text(token.restriction.actions.name()))
        .with(CREATION_TIME, number(token.creation_time));
    if let Some(experiment) = token.restriction.experiment {
        item = item.with(EXPERIMENT, text(experiment.to_string()));
    }
    if let Some(rule) = &token.issued_by {
        item = item.with(ISSUED_BY, text(rule.as_str()));
    }
    if let Some(end) = token.expires {
        item = item.with(EXPIRES, number(end));
    }
    item
}
