//! Sealing refresh tokens.

use super::*;

const PLACE: RefreshTokenPlace<'_> = RefreshTokenPlace { provider: "entra", session: "digest" };

fn secret(text: &str) -> ClientSecret {
    ClientSecret::new(text).unwrap()
}

fn token() -> RefreshToken {
    RefreshToken::new("refresh").unwrap()
}

#[test]
fn a_sealed_token_can_be_opened() {
    let sealed = seal(&secret("s"), PLACE, &token()).unwrap();
    assert_eq!(open(&secret("s\n"), PLACE, &sealed).unwrap(), token());
    assert_ne!(seal(&secret("s"), PLACE, &token()).unwrap(), sealed, "each has a nonce of its own");
    assert_eq!(sealed.len(), 1 + 12 + "refresh".len() + 16);
}

#[test]
fn a_token_can_be_opened_in_its_place_only() {
    let sealed = seal(&secret("s"), PLACE, &token()).unwrap();
    for place in [
        RefreshTokenPlace { session: "other", ..PLACE },
        RefreshTokenPlace { provider: "okta", ..PLACE },
        RefreshTokenPlace { provider: "entrad", session: "igest" },
    ] {
        assert_eq!(open(&secret("s"), place, &sealed), Err(SecretTextError::CannotOpen));
    }
    assert_eq!(open(&secret("other"), PLACE, &sealed), Err(SecretTextError::CannotOpen));
}

#[test]
fn a_token_that_was_changed_cannot_be_opened() {
    let sealed = seal(&secret("s"), PLACE, &token()).unwrap();
    for place in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[place] ^= 1;
        assert_eq!(open(&secret("s"), PLACE, &changed), Err(SecretTextError::CannotOpen), "{place}");
        assert_eq!(open(&secret("s"), PLACE, &sealed[..place]), Err(SecretTextError::CannotOpen), "{place}");
    }
}

#[test]
fn tokens_of_the_first_version_can_be_opened() {
    // Tokens that are stored have to stay readable, so this must not be replaced.
    let sealed = [
        1, 165, 19, 227, 182, 107, 148, 207, 187, 91, 109, 201, 124, 44, 183, 64, 191, 88, 74, 127, 81, 188, 238, 230,
        1, 250, 245, 146, 181, 124, 72, 131, 35, 129, 147, 202,
    ];
    assert_eq!(open(&secret("s"), PLACE, &sealed).unwrap(), token());
}

#[test]
fn a_client_secret_is_one_line() {
    assert_eq!(secret(" a b\r\n").expose(), "a b");
    for text in ["", " \n", "a\nb", "a\u{0}b"] {
        assert_eq!(ClientSecret::new(text).unwrap_err(), SecretTextError::ClientSecret);
    }
    assert!(ClientSecret::new("a".repeat(MAX_CLIENT_SECRET_BYTES + 1)).is_err());
    assert!(RefreshToken::new("").is_err() && RefreshToken::new("a".repeat(MAX_REFRESH_TOKEN_BYTES + 1)).is_err());
}

#[test]
fn secrets_are_not_printed() {
    assert_eq!(format!("{:?} {:?}", secret("s"), token()), "ClientSecret(…) RefreshToken(…)");
}
