//! The rows of identities, and how the user's item describes a person.

use identity_providers::Person;
use key_schema::attributes::{CREATION_TIME, IDENTITIES, ISSUER, SUBJECT, USER, USER_ID};
use key_schema::{Key, access_rows};
use mlflow_api::{Error, Result, UserName};
use table::{Condition, Item, Map, Write, map, number, text};

/// Maximum length of an issuer and a subject together, in bytes.
const MAX_PERSON_BYTES: usize = 1_024;

/// Returns the attributes of a new user's item that link it to an identity, and the write of the
/// identity's row.
pub(super) fn new_identity(item: Item, person: &Person, name: &UserName, id: u32, row: Condition) -> (Item, Write) {
    let identities = Map::from([(person.digest(), text(person_text(person)))]);
    (item.with(IDENTITIES, map(identities)), Write::Put(identity_row(person, name, id), row))
}

/// Returns the write that deletes the row of a user's identity, for a transaction.
pub(super) fn removal(digest: &str, user_id: u32) -> Write {
    let is_of = Condition::Equals(USER_ID.into(), number(user_id));
    Write::Delete(identity_key(digest), Condition::Any(vec![Condition::item_missing(), is_of]))
}

/// Parses the text by which a user's item describes a person: the inverse of [`person_text`].
pub(super) fn person_of(text: &str) -> Option<Person> {
    let (issuer, subject) = text.split_once(' ')?;
    Some(Person { issuer: issuer.to_owned(), subject: subject.to_owned() })
}

/// Checks that a person can be stored.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the issuer or the subject is empty, too long, or contains
/// control characters, or if the issuer contains a blank.
pub(super) fn check_person(person: &Person) -> Result<()> {
    let Person { issuer, subject } = person;
    if issuer.is_empty() || issuer.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err(Error::invalid("The issuer of an identity is a URL without blanks."));
    }
    if subject.is_empty() || subject.chars().any(char::is_control) {
        return Err(Error::invalid("The subject of an identity must not be empty or contain control characters."));
    }
    if issuer.len() + subject.len() > MAX_PERSON_BYTES {
        return Err(Error::invalid(format!(
            "The issuer and the subject of an identity have at most {MAX_PERSON_BYTES} bytes together."
        )));
    }
    Ok(())
}

/// Returns the text by which a user's item describes a person.
pub(super) fn person_text(person: &Person) -> String {
    format!("{} {}", person.issuer, person.subject)
}

/// Returns the key of an identity's row.
pub(super) fn identity_key(digest: &str) -> Key {
    access_rows::Identity::key(&digest.into())
}

/// Returns the row of an identity that is linked to a user.
pub(super) fn identity_row(person: &Person, name: &UserName, id: u32) -> Item {
    Item::new(identity_key(&person.digest()))
        .with(USER, text(name.as_str()))
        .with(USER_ID, number(id))
        .with(ISSUER, text(person.issuer.as_str()))
        .with(SUBJECT, text(person.subject.as_str()))
        .with(CREATION_TIME, number(runtime::clock::now_ms()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_read_as_stored() {
        let person = |issuer: &str, subject: &str| Person { issuer: issuer.to_owned(), subject: subject.to_owned() };
        let ann = person("https://id.example/a", "00u1 with a blank");
        assert_eq!(person_of(&person_text(&ann)), Some(ann.clone()));
        check_person(&ann).unwrap();
        for wrong in [
            person("", "s"),
            person("https://id.example", ""),
            person("https://id.example /a", "s"),
            person("https://id.example", "a\nb"),
            person("https://id.example", &"s".repeat(MAX_PERSON_BYTES)),
        ] {
            assert!(check_person(&wrong).is_err(), "{wrong:?}");
        }
    }
}
