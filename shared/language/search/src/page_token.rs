//! Page tokens, which encode where the next page begins.
//!
//! MLflow's tokens contain an offset, so a row that is added or removed between two pages shifts
//! the rows of later pages. The tokens here contain the sort key of the last row instead. A token
//! is only valid for the search that returned it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD};
use mlflow_api::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fingerprint::Fingerprint;
use crate::python_repr;

const VERSION: u8 = 1;

#[derive(Serialize)]
struct EncodedPageToken<'a, K> {
    #[serde(rename = "v")]
    version: u8,
    #[serde(rename = "q")]
    search: Fingerprint,
    #[serde(rename = "k")]
    last: &'a K,
}

#[derive(Deserialize)]
struct DecodedPageToken<K> {
    #[serde(rename = "v")]
    version: u8,
    #[serde(rename = "q")]
    search: Fingerprint,
    #[serde(rename = "k")]
    last: K,
}

/// Creates the token for the page of `search` that begins after `last`, which is a sort key or any
/// other value that identifies the position.
pub fn encode_page_token(search: Fingerprint, last: &impl Serialize) -> Result<String> {
    let json = serde_json::to_vec(&EncodedPageToken { version: VERSION, search, last }).map_err(Error::internal)?;
    Ok(STANDARD.encode(json))
}

/// Decodes a page token of `search`, and returns the key that the page begins after. Returns `None`
/// for the empty token, which requests the first page.
///
/// Anything that is not a token is rejected with the message of MLflow's
/// `SearchUtils.parse_start_offset_from_page_token`.
pub fn decode_page_token<K: DeserializeOwned>(search: Fingerprint, token: &str) -> Result<Option<K>> {
    if token.is_empty() {
        return Ok(None);
    }
    let value = parsed(token)?;
    match DecodedPageToken::deserialize(&value) {
        Ok(token) if token.version != VERSION => Err(Error::invalid(not_ours(&value))),
        Ok(token) if token.search != search => Err(Error::invalid(
            "Invalid page token, it belongs to another search. Send it with the experiments, filter, order and view \
             it was returned for.",
        )),
        Ok(token) => Ok(Some(token.last)),
        Err(_) => Err(Error::invalid(not_ours(&value))),
    }
}

/// Checks whether a text has the form of a page token, for requests in which the search that the
/// token has to belong to is only known later. The empty text is a valid token.
pub fn check_page_token(token: &str) -> Result<()> {
    if token.is_empty() {
        return Ok(());
    }
    let value = parsed(token)?;
    DecodedPageToken::<Value>::deserialize(&value).map(|_| ()).map_err(|_| Error::invalid(not_ours(&value)))
}

/// Checks whether a text is JSON in Base64, as all page tokens are.
#[must_use]
pub fn is_encoded_json(token: &str) -> bool {
    parsed(token).is_ok()
}

/// Returns the JSON value that a token contains.
pub(crate) fn parsed(token: &str) -> Result<Value> {
    let decoded = decode_base64(token).ok_or_else(|| Error::invalid("Invalid page token, could not base64-decode"))?;
    serde_json::from_slice(&decoded)
        .map_err(|_| Error::invalid(format!("Invalid page token, decoded value={}", python_repr::bytes(&decoded))))
}

/// Encodes a JSON value as a token.
pub(crate) fn printed_base64(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

pub(crate) fn not_ours(value: &Value) -> String {
    format!("Invalid page token, parsed value={}", python_repr::data(value))
}

/// Decodes Base64 like Python's `base64.b64decode`: characters outside the alphabet are skipped,
/// and everything after the padding is ignored.
fn decode_base64(token: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireNone),
    );
    if !token.is_ascii() {
        return None;
    }
    let mut digits = Vec::with_capacity(token.len());
    let mut padding = 0;
    for byte in token.bytes() {
        let filled = digits.len() % 4;
        if byte == b'=' {
            if filled >= 2 {
                padding += 1;
                if filled + padding >= 4 {
                    return LENIENT.decode(digits).ok();
                }
            }
        } else if byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/' {
            padding = 0;
            digits.push(byte);
        }
    }
    // Without padding, the last group must be complete.
    if digits.len() % 4 == 0 { LENIENT.decode(digits).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use mlflow_api::ErrorCode;

    use super::*;
    use crate::sort_key::SortKey;
    use mlflow_api::tracking::ViewType;

    fn search(filter: &str) -> Fingerprint {
        Fingerprint::of_run_search(&[], filter, &[], ViewType::ActiveOnly)
    }

    fn refused(token: &str) -> String {
        let error = decode_page_token::<SortKey>(search(""), token).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParameterValue);
        error.message
    }

    #[test]
    fn what_is_no_token_is_refused_as_mlflow_refuses_it() {
        assert_eq!(decode_page_token::<SortKey>(search(""), "").unwrap(), None);
        for token in ["abc", "a", "é", "YQ="] {
            assert_eq!(refused(token), "Invalid page token, could not base64-decode", "{token}");
        }
        for (token, decoded) in
            [("%%%", "b''"), ("====", "b''"), ("aGVsbG8=", "b'hello'"), ("/wo=ignored", "b'\\xff\\n'")]
        {
            assert_eq!(refused(token), format!("Invalid page token, decoded value={decoded}"), "{token}");
        }
        let offset = STANDARD.encode(r#"{"offset": 0}"#);
        assert_eq!(refused(&offset), "Invalid page token, parsed value={'offset': 0}");
        let newer = STANDARD.encode(r#"{"v":2,"q":1,"k":[]}"#);
        assert_eq!(refused(&newer), "Invalid page token, parsed value={'v': 2, 'q': 1, 'k': []}");
    }

    #[test]
    fn a_token_of_another_search_is_refused() {
        let key: SortKey = serde_json::from_str(r#"[["d",{"i":5}],["a",{"t":"x"}]]"#).unwrap();
        let token = encode_page_token(search("a"), &key).unwrap();
        assert_eq!(decode_page_token(search("a"), &token).unwrap(), Some(key));
        assert!(refused(&token).starts_with("Invalid page token, it belongs to another search."));
    }
}
