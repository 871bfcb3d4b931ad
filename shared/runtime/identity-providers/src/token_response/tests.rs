//! Which failures leave a refresh token usable.

use super::*;

fn parse(status: u16, body: &str) -> Result<TokenResponse, TokenError> {
    TokenResponse::parse(&ProviderResponse { status, body: body.to_owned().into() })
}

fn error(status: u16, body: &str) -> TokenError {
    parse(status, body).map(|_| ()).unwrap_err()
}

#[test]
fn tokens_are_read() {
    let tokens = parse(200, r#"{"id_token":"i","access_token":"a","refresh_token":"r","expires_in":5}"#).unwrap();
    assert_eq!(tokens.id_token.as_deref().map(String::as_str), Some("i"));
    assert_eq!(tokens.access_token.as_deref().map(String::as_str), Some("a"));
    assert_eq!(tokens.refresh_token.unwrap().expose(), "r");
    assert!(parse(200, r#"{"refresh_token":""}"#).unwrap().refresh_token.is_none());
}

#[test]
fn a_refusal_of_the_client_is_no_refusal_of_the_person() {
    let refused = |code: &str| error(400, &format!(r#"{{"error":"{code}"}}"#));
    for code in ["invalid_client", "unauthorized_client"] {
        assert_eq!(refused(code), TokenError::Client(code.to_owned()));
    }
    for code in ["invalid_grant", "interaction_required", "consent_required", "access_denied"] {
        assert_eq!(refused(code), TokenError::Grant(code.to_owned()));
    }
    assert_eq!(refused("temporarily_unavailable"), TokenError::Unavailable("temporarily_unavailable".to_owned()));
    assert_eq!(
        error(401, r#"{"error":"invalid_client","error_description":"AADSTS7000215:\r\nInvalid secret."}"#),
        TokenError::Client("invalid_client: AADSTS7000215:  Invalid secret".to_owned())
    );
}

#[test]
fn other_failures_may_have_used_the_token() {
    for (status, body) in [
        (500, r#"{"error":"invalid_grant"}"#),
        (503, ""),
        (404, "<html>"),
        (302, ""),
        (400, r#"{"message":"no"}"#),
        (200, "<html>"),
        (200, "[]"),
    ] {
        assert!(matches!(error(status, body), TokenError::Unavailable(_)), "{status} {body}");
    }
    assert!(matches!(error(429, ""), TokenError::Throttled(_)));
    let long = format!(r#"{{"refresh_token":"{}"}}"#, "r".repeat(20_000));
    assert!(matches!(error(200, &long), TokenError::Unavailable(_)));
}

#[test]
fn a_long_message_is_cut() {
    let body = format!(r#"{{"error":"invalid_grant","error_description":"{}"}}"#, "ä".repeat(5000));
    let TokenError::Grant(message) = error(400, &body) else { panic!("another error") };
    assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
}
