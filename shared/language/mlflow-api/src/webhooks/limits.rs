//! The limits on webhooks, with MLflow's error messages (`utils/validation.py`).

use super::event::WebhookEvent;
use crate::python;
use crate::{Error, Result};

/// Maximum number of webhooks of a workspace. MLflow has no limit.
pub const MAX_WEBHOOKS: usize = 100;
/// Maximum length of a name, in characters.
const MAX_NAME_LENGTH: usize = 63;
/// Maximum length of a description, in characters, as in MLflow's databases. SQLite ignores it.
pub const MAX_DESCRIPTION_LENGTH: usize = 1_000;
/// Maximum length of a secret, in bytes. MLflow has no limit.
pub const MAX_SECRET_LENGTH: usize = 1_000;
/// Page size for requests without `max_results`, or with 0.
pub const DEFAULT_PAGE_SIZE: usize = 100;
/// Maximum page size.
pub const MAX_PAGE_SIZE: usize = 1_000;

/// Checks the name of a webhook.
pub fn check_name(name: &str) -> Result<()> {
    // MLflow's pattern ignores case. In Python, these four letters then match `k`, `s` and `i`.
    let is_alphanumeric = |letter: char| {
        letter.is_ascii_alphanumeric() || matches!(letter, '\u{212a}' | '\u{17f}' | '\u{130}' | '\u{131}')
    };
    let is_inner = |letter: char| is_alphanumeric(letter) || matches!(letter, '.' | '_' | '-');
    let has_ends = name.starts_with(is_alphanumeric) && name.ends_with(is_alphanumeric);
    if has_ends && name.chars().all(is_inner) && name.chars().count() <= MAX_NAME_LENGTH {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Webhook name {} is invalid. It must start and end with a letter or digit, be less than 63 characters long, and \
         contain only letters, digits, dots (.), underscores (_), and hyphens (-).",
        python::repr(name)
    )))
}

/// Checks that a URL is not blank. The crate `outbound` checks its length, its parts and its
/// address.
pub fn check_url_text(url: &str) -> Result<()> {
    if !url.trim().is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!("Webhook URL cannot be empty or just whitespace: {}", python::repr(url))))
}

/// Checks a description.
pub fn check_description(description: &str) -> Result<()> {
    at_most("description", "characters", MAX_DESCRIPTION_LENGTH, description.chars().count())
}

/// Checks a secret, which may be empty.
pub fn check_secret(secret: &str) -> Result<()> {
    at_most("secret", "bytes", MAX_SECRET_LENGTH, secret.len())
}

fn at_most(field: &str, unit: &str, limit: usize, length: usize) -> Result<()> {
    if length <= limit {
        return Ok(());
    }
    Err(Error::invalid(format!("The {field} of a webhook must be at most {limit} {unit} long, but has {length}.")))
}

/// Checks the events of a webhook, and sorts them.
pub fn check_events(mut events: Vec<WebhookEvent>) -> Result<Vec<WebhookEvent>> {
    if events.is_empty() {
        return Err(Error::invalid("Webhook events must be a non-empty list of WebhookEvent objects: []."));
    }
    events.sort_unstable();
    if let Some([event, _]) = events.array_windows().find(|[event, next]| event == next) {
        return Err(Error::invalid(format!("Webhook events must be different, but '{}' is repeated.", event.name())));
    }
    Ok(events)
}

/// Returns the page size for the `max_results` of a request.
pub fn page_size(max_results: i32) -> Result<usize> {
    match usize::try_from(max_results) {
        Ok(0) => Ok(DEFAULT_PAGE_SIZE),
        Ok(size) if size <= MAX_PAGE_SIZE => Ok(size),
        _ => Err(Error::invalid("max_results must be between 1 and 1000.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_mlflow() {
        for name in ["a", "9", "A.b_c-d", &"a".repeat(63), "a\u{212a}", "a\u{17f}\u{130}\u{131}"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", " ", "a b", "-a", "a.", "ab\n", "é", &"a".repeat(64)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert_eq!(
            check_name("a'b").unwrap_err().message,
            "Webhook name \"a'b\" is invalid. It must start and end with a letter or digit, be less than 63 characters \
             long, and contain only letters, digits, dots (.), underscores (_), and hyphens (-)."
        );
        assert!(check_name("ab\n").unwrap_err().message.starts_with("Webhook name 'ab\\n' is invalid."));
    }

    #[test]
    fn urls_descriptions_and_secrets_are_bounded() {
        let message = check_url_text(" ").unwrap_err().message;
        assert_eq!(message, "Webhook URL cannot be empty or just whitespace: ' '");
        assert!(check_description(&"é".repeat(1_000)).is_ok() && check_description(&"d".repeat(1_001)).is_err());
        let message = check_description(&"é".repeat(1_001)).unwrap_err().message;
        assert_eq!(message, "The description of a webhook must be at most 1000 characters long, but has 1001.");
        assert!(check_secret("").is_ok() && check_secret(&"é".repeat(500)).is_ok());
        let message = check_secret(&"é".repeat(501)).unwrap_err().message;
        assert_eq!(message, "The secret of a webhook must be at most 1000 bytes long, but has 1002.");
    }

    #[test]
    fn events_are_sorted_and_different() {
        use WebhookEvent::{ModelVersionCreated, RegisteredModelCreated};
        let sorted = check_events(vec![RegisteredModelCreated, ModelVersionCreated]).unwrap();
        assert_eq!(sorted, [ModelVersionCreated, RegisteredModelCreated]);
        let repeated = check_events(vec![RegisteredModelCreated, ModelVersionCreated, RegisteredModelCreated]);
        let message = "Webhook events must be different, but 'registered_model.created' is repeated.";
        assert_eq!(repeated.unwrap_err().message, message);
        let message = "Webhook events must be a non-empty list of WebhookEvent objects: [].";
        assert_eq!(check_events(Vec::new()).unwrap_err().message, message);
    }

    #[test]
    fn pages_have_up_to_a_thousand_webhooks() {
        assert_eq!((page_size(0), page_size(1), page_size(1_000)), (Ok(100), Ok(1), Ok(1_000)));
        for wrong in [-1, 1_001, i32::MIN] {
            assert_eq!(page_size(wrong).unwrap_err().message, "max_results must be between 1 and 1000.");
        }
    }
}
