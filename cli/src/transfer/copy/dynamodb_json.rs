//! Parses items in DynamoDB's JSON, the format that the embedded engine and exports to S3 use.

use aws_sdk_dynamodb::primitives::Blob;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};
use table::{Item, Value};

/// Parses an item. Returns `None` if the JSON does not have this format.
pub(super) fn item(json: Json) -> Option<Item> {
    let Json::Object(attributes) = json else { return None };
    attributes.into_iter().map(|(name, of)| Some((name, value(of)?))).collect::<Option<_>>().map(Item)
}

/// Parses a value: an object with a single key, which is the type of the value.
fn value(json: Json) -> Option<Value> {
    let Json::Object(typed) = json else { return None };
    let (kind, value) = only(typed)?;
    Some(match (kind.as_str(), value) {
        ("S", Json::String(text)) => Value::S(text),
        ("N", Json::String(digits)) => Value::N(digits),
        ("B", Json::String(encoded)) => Value::B(blob(&encoded)?),
        ("BOOL", Json::Bool(is_so)) => Value::Bool(is_so),
        ("NULL", Json::Bool(is_null)) => Value::Null(is_null),
        ("SS", Json::Array(texts)) => Value::Ss(texts.into_iter().map(text).collect::<Option<_>>()?),
        ("NS", Json::Array(numbers)) => Value::Ns(numbers.into_iter().map(text).collect::<Option<_>>()?),
        ("BS", Json::Array(blobs)) => {
            Value::Bs(blobs.into_iter().map(|encoded| blob(&text(encoded)?)).collect::<Option<_>>()?)
        }
        ("L", Json::Array(values)) => Value::L(values.into_iter().map(self::value).collect::<Option<_>>()?),
        ("M", nested @ Json::Object(_)) => Value::M(item(nested)?.0),
        _ => return None,
    })
}

fn only(typed: Map<String, Json>) -> Option<(String, Json)> {
    let mut entries = typed.into_iter();
    let entry = entries.next()?;
    entries.next().is_none().then_some(entry)
}

fn text(json: Json) -> Option<String> {
    if let Json::String(text) = json { Some(text) } else { None }
}

fn blob(encoded: &str) -> Option<Blob> {
    STANDARD.decode(encoded).ok().map(Blob::new)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn all_types_are_read() {
        let json = json!({
            "text": { "S": "ä\u{0}" }, "number": { "N": "-1.50E+3" }, "bytes": { "B": "AP8=" }, "flag": { "BOOL": false },
            "nothing": { "NULL": true }, "texts": { "SS": ["a", "b"] }, "numbers": { "NS": ["1", "2.0"] }, "blobs": { "BS": ["", "AA=="] },
            "list": { "L": [{ "S": "" }, { "L": [] }] }, "map": { "M": { "": { "N": "0" } } },
        });
        let blob = |bytes: &[u8]| Blob::new(bytes);
        let expected = HashMap::from([
            ("text", Value::S("ä\0".to_owned())),
            ("number", Value::N("-1.50E+3".to_owned())),
            ("bytes", Value::B(blob(&[0, 255]))),
            ("flag", Value::Bool(false)),
            ("nothing", Value::Null(true)),
            ("texts", Value::Ss(vec!["a".to_owned(), "b".to_owned()])),
            ("numbers", Value::Ns(vec!["1".to_owned(), "2.0".to_owned()])),
            ("blobs", Value::Bs(vec![blob(&[]), blob(&[0])])),
            ("list", Value::L(vec![Value::S(String::new()), Value::L(Vec::new())])),
            ("map", Value::M(HashMap::from([(String::new(), Value::N("0".to_owned()))]))),
        ]);
        let expected = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(item(json), Some(Item(expected)));
    }

    #[test]
    fn anything_else_is_no_item() {
        for json in [
            json!([]),
            json!({ "a": "b" }),
            json!({ "a": {} }),
            json!({ "a": { "S": "b", "N": "1" } }),
            json!({ "a": { "N": 1 } }),
            json!({ "a": { "B": "?" } }),
            json!({ "a": { "X": "b" } }),
            json!({ "a": { "SS": [1] } }),
        ] {
            assert_eq!(item(json.clone()), None, "{json}");
        }
    }
}
