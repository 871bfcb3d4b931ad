//! Tokens of users.

use access::Restriction;
use key_schema::access_rows;
use key_schema::attributes::{CREATION_TIME, EXPERIMENT, EXPIRES, NAME, ONLY, TOKEN, USER_ID};
use mlflow_api::{Error, Result, UserName};
use permissions::{Secret, Token, token_key};
use table::{Condition, Item, Query, number, text};

use super::Store;
use super::ids::Kind;

/// The most tokens that a user has at a time. Tokens that have expired do not count.
pub const MOST_TOKENS: usize = 100;
/// Bytes of the longest name of one.
const LONGEST_NAME: usize = 200;
/// Days of the longest that ends.
const LONGEST_DAYS: u32 = 3_660;

/// A token that is to be made.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name, which its user has chosen.
    pub name: String,
    /// Its limits.
    pub restriction: Restriction,
    /// After how many days it ends; `None`, if it does not.
    pub days: Option<u32>,
}

impl Store {
    /// Makes a token: its secret is shown to nobody again. Four requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where there is no such user; `INVALID_PARAMETER_VALUE`.
    pub async fn token_create(&self, user: &UserName, new: NewToken) -> Result<(Secret, Token)> {
        let name = new.name.trim().to_owned();
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(Error::invalid(format!("The name of a token has 1 to {LONGEST_NAME} bytes.")));
        }
        if new.days.is_some_and(|days| days == 0 || days > LONGEST_DAYS) {
            return Err(Error::invalid(format!("A token ends after 1 to {LONGEST_DAYS} days, or does not.")));
        }
        let found = self.user_get(user).await?;
        if self.tokens_of(user, found.user.id).await?.len() >= MOST_TOKENS {
            return Err(Error::invalid(format!(
                "There are {MOST_TOKENS} tokens of this user already. Revoke one first."
            )));
        }
        let secret = Secret::new(user.clone());
        let now = clock::now_ms();
        let token = Token {
            id: self.next_id(Kind::Tokens).await?,
            user_id: found.user.id,
            digest: secret.digest(),
            name,
            restriction: new.restriction,
            creation_time: now,
            expires: new.days.map(|days| now / 1_000 + i64::from(days) * 86_400),
        };
        let mut item = Item::new(token_key(user, &token.digest))
            .with(TOKEN, number(token.id))
            .with(USER_ID, number(token.user_id))
            .with(NAME, text(token.name.as_str()))
            .with(ONLY, text(token.restriction.only.name()))
            .with(CREATION_TIME, number(now));
        if let Some(experiment) = token.restriction.experiment {
            item = item.with(EXPERIMENT, text(experiment.to_string()));
        }
        if let Some(end) = token.expires {
            item = item.with(EXPIRES, number(end));
        }
        self.access.put(item, &Condition::Always).await?;
        Ok((secret, token))
    }

    /// The tokens of a user that are not over, in the order in which they were made. Two requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, where there is no such user.
    pub async fn tokens(&self, user: &UserName) -> Result<Vec<Token>> {
        let id = self.user_get(user).await?.user.id;
        self.tokens_of(user, id).await
    }

    async fn tokens_of(&self, user: &UserName, id: u32) -> Result<Vec<Token>> {
        let items = self.access.query(Query::of(access_rows::Token::all(user))).await?;
        let mut tokens = items.iter().map(Token::of).collect::<Result<Vec<_>>>()?;
        tokens.retain(|token| token.user_id == id && !token.is_over());
        tokens.sort_by_key(|token| token.id);
        Ok(tokens)
    }

    /// Revokes a token, in every process. Three requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub async fn token_revoke(&self, user: &UserName, id: u32) -> Result<()> {
        let tokens = self.tokens(user).await?;
        let token = tokens.iter().find(|token| token.id == id);
        let token = token.ok_or_else(|| Error::not_found(format!("There is no token with the id {id}.")))?;
        Ok(self.access.delete(&token_key(user, &token.digest), &Condition::Always).await?)
    }
}
