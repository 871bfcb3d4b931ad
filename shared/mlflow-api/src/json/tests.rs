//! What Python reads is read, and printed as Python prints it.

use proptest::prelude::*;

use super::{Json, Object};

#[test]
fn values_come_back_as_python_prints_them() {
    for (text, printed) in [
        ("null", "null"),
        (" [ true ,\n\tfalse ] ", "[true, false]"),
        (r#"{"b":1,"a":{}, "b" : 2}"#, r#"{"b": 2, "a": {}}"#),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("[-0, -0.0, 0, 10, -7]", "[0, -0.0, 0, 10, -7]"),
        ("[1e5, 1E400, -1e400, 2.50, 1e-7]", "[100000.0, Infinity, -Infinity, 2.5, 1e-07]"),
        ("[NaN, Infinity, -Infinity]", "[NaN, Infinity, -Infinity]"),
        (r#""é\u00e9\ud83d\ude00\/\"\\\n""#, r#""\u00e9\u00e9\ud83d\ude00/\"\\\n""#),
    ] {
        let value = Json::parse(text).unwrap();
        assert_eq!(value.print(), printed, "{text}");
        assert_eq!(Json::parse(printed).unwrap().print(), printed, "{text}");
    }
    assert_eq!(
        Json::parse(r#"{"b": 1, "a": {"d": 2, "c": 3}}"#).unwrap().print_sorted(),
        r#"{"a": {"c": 3, "d": 2}, "b": 1}"#
    );
}

#[test]
fn texts_print_with_and_without_escapes() {
    let value = Json::parse(r#"{"é": "\u00fc\u007f\u0001\n\"\ud83d\ude00"}"#).unwrap();
    assert_eq!(value.print(), r#"{"\u00e9": "\u00fc\u007f\u0001\n\"\ud83d\ude00"}"#);
    assert_eq!(value.print_unicode(), "{\"é\": \"ü\u{7f}\\u0001\\n\\\"😀\"}");
}

#[test]
fn halves_of_surrogates_become_question_marks_where_that_is_asked_for() {
    for (text, read) in [
        (r#""\ud83d""#, "?"),
        (r#""a\ude00b""#, "a?b"),
        (r#""\ud83d\ud83d\ude00""#, "?😀"),
        (r#""\ud83d\n""#, "?\n"),
        (r#""\ud83dx""#, "?x"),
        (r#""\ud83d\u0041""#, "?A"),
    ] {
        assert_eq!(Json::parse(text), None, "{text}");
        assert_eq!(Json::parse_lossy(text), Some(Json::from(read)), "{text}");
    }
    for text in [r#""\ud83d\u12""#, r#""\ud83d\x""#, r#""\ud8""#] {
        assert_eq!(Json::parse_lossy(text), None, "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        " ",
        "x",
        "nul",
        "nullx",
        "{",
        "[1",
        "[1,]",
        "{\"a\" 1}",
        "{\"a\": 1,}",
        "{a: 1}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "\"a",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "1 2",
        "\u{feff}1",
        "-NaN",
        "'a'",
    ] {
        assert_eq!(Json::parse(text), None, "{text}");
    }
    assert!(Json::parse(&("[".repeat(128) + &"]".repeat(128))).is_some());
    assert_eq!(Json::parse(&"[".repeat(100_000)), None);
}

#[test]
fn texts_are_pythons() {
    let value = Json::parse(r#"{"a": ["it's", 1.0, null, true], "b": {}}"#).unwrap();
    assert_eq!(value.to_text(), r#"{'a': ["it's", 1.0, None, True], 'b': {}}"#);
    assert_eq!(Json::from("x").to_text(), "x");
}

#[test]
fn an_update_keeps_the_places() {
    let mut object: Object = [("a", 1), ("b", 2)]
        .map(|(key, value)| (key.to_owned(), Json::Integer(value.to_string())))
        .into_iter()
        .collect();
    object.update([("c".to_owned(), Json::Null), ("a".to_owned(), Json::Null)]);
    assert_eq!(Json::Object(object).print(), r#"{"a": null, "b": 2, "c": null}"#);
}

#[test]
fn many_entries_are_found_as_few_are() {
    let mut object = Object::default();
    for round in 0..3 {
        object.update(
            (0..100).map(|number| (format!("k{}", number % 40), Json::Integer((round * 100 + number).to_string()))),
        );
    }
    assert_eq!(object.iter().count(), 40);
    assert!(object.iter().enumerate().all(|(place, (key, _))| key == format!("k{place}")));
    assert_eq!(object.get("k39"), Some(&Json::Integer("279".to_owned())));
}

proptest! {
    #[test]
    fn agrees_with_serde(text in "[ \\[\\]{}\",:a1.e\\-\\\\u0tn]{0,12}") {
        let strict: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let printed = Json::parse(&text).map(|value| value.print());
        let again = printed.as_ref().and_then(|printed| serde_json::from_str(printed).ok());
        // What serde reads, this reads the same; and it reads more.
        prop_assert!(strict.is_none() || again == strict, "{:?}", printed);
    }
}
