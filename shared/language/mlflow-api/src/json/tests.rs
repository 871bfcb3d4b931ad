//! Tests that JSON is parsed and formatted like in Python.

use proptest::prelude::*;

use serde_json::Value;

use super::{Json, JsonError, JsonObject, MAX_DEPTH, read_value, unescaped, without_halves};
use crate::python;

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
fn halves_of_surrogates_become_another_character() {
    for (text, read) in [
        (r#""\ud83d""#, "?"),
        (r#""a\ude00b""#, "a?b"),
        (r#""\ud83d\ud83d\ude00""#, "?😀"),
        (r#""\ud83d\n""#, "?\n"),
        (r#""\ud83dx""#, "?x"),
        (r#""\ud83d\u0041""#, "?A"),
    ] {
        assert_eq!(Json::parse_lossy(text), Some(Json::from(read)), "{text}");
        let read = read.replace('?', "\u{fffd}");
        assert_eq!(Json::parse(text), Some(Json::from(read.as_str())), "{text}");
        assert_eq!(read_value(text.as_bytes()), Ok(Value::from(read.as_str())), "{text}");
        let mended = without_halves(text.as_bytes());
        assert_eq!(serde_json::from_slice::<Value>(&mended).unwrap(), Value::from(read), "{text}");
    }
    for text in [r#""\ud83d\u12""#, r#""\ud83d\x""#, r#""\ud8""#] {
        assert_eq!(Json::parse_lossy(text), None, "{text}");
        assert_eq!(Json::read(text), Err(JsonError::NoJson), "{text}");
        assert_eq!(read_value(text.as_bytes()), Err(JsonError::NoJson), "{text}");
    }
    // Everything except escapes of unpaired surrogates stays unchanged.
    for text in [r#""\\ud83e""#, r#"{"\ud83d\ude00": "\\\\ud83e\n"}"#, r#""\"#, r#""\u"#, "", "ud83e"] {
        assert_eq!(without_halves(text.as_bytes()), text.as_bytes(), "{text}");
    }
}

/// Calls `act` in a thread with the stack size of a server's worker thread.
fn on_a_workers_stack<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(act).unwrap().join().unwrap()
}

#[test]
fn the_deepest_values_fit_on_a_stack() {
    for (open, close) in [("[", "]"), ("{\"a\": ", "}")] {
        let text = format!("{}1{}", open.repeat(MAX_DEPTH), close.repeat(MAX_DEPTH));
        let deeper = format!("{open}{text}{close}");
        let endless = open.repeat(200_000);
        on_a_workers_stack(move || {
            let value = Json::parse(&text).unwrap();
            assert!(value.clone() == value && value.print() == text && value.print_unicode() == text);
            assert!(value.print_sorted() == text && !value.to_text().is_empty());
            let read = read_value(text.as_bytes()).unwrap();
            assert!(read.clone() == read && python::json_spaced(&read) == text && !python::data(&read).is_empty());
            assert_eq!(read.to_string(), text.replace(' ', ""));
            assert_eq!(serde_json::to_value(&read).unwrap(), read);
            for deep in [deeper, endless] {
                assert_eq!(Json::read(&deep), Err(JsonError::TooDeep));
                assert_eq!(read_value(deep.as_bytes()), Err(JsonError::TooDeep));
            }
        });
    }
    let error = Json::of("It", &"[".repeat(MAX_DEPTH + 1)).unwrap_err();
    assert_eq!(error.message, "It has more than 1000 levels of nested arrays and objects.");
    assert_eq!(Json::of("It", "x").unwrap_err().message, "It is not valid JSON.");
}

#[test]
fn what_serde_refuses_is_read_as_it_would_be() {
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(200), "]".repeat(200));
    let flat = r#"{"b": [1, -2, 2.5, 18446744073709551615, 1e30, true, null], "a": "\u00e9\n"}"#;
    let mut read = read_value(deep(flat).as_bytes()).unwrap();
    while let Value::Array(mut items) = read {
        read = items.remove(0);
    }
    assert_eq!(read, serde_json::from_str::<Value>(flat).unwrap());
    for number in ["NaN", "1e999", "-Infinity"] {
        assert_eq!(read_value(deep(number).as_bytes()), Err(JsonError::NoJson), "{number}");
    }
}

/// Checks that JSON with eight times as many surrogates takes less than 32 times as long. Measures
/// the thread's CPU time, which excludes time used by other programs.
#[test]
fn halves_are_read_in_linear_time() {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::try_from(time).unwrap()
    };
    let shortest = |halves: usize| {
        let text = format!("\"{}\"", "\\ud83e".repeat(halves));
        let read = || {
            let begin = now();
            assert!(read_value(text.as_bytes()).is_ok() && without_halves(text.as_bytes()).len() == text.len());
            now().checked_sub(begin).unwrap()
        };
        (0..5).map(|_| read()).min().unwrap()
    };
    let (short, long) = (shortest(1_000), shortest(8_000));
    assert!(long < 32 * short.max(std::time::Duration::from_micros(50)), "{short:?}, {long:?}");
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
        "1 2",
        "\u{feff}1",
        "-NaN",
        "'a'",
    ] {
        assert_eq!(Json::parse(text), None, "{text}");
    }
}

#[test]
fn texts_are_pythons() {
    let value = Json::parse(r#"{"a": ["it's", 1.0, null, true], "b": {}}"#).unwrap();
    assert_eq!(value.to_text(), r#"{'a': ["it's", 1.0, None, True], 'b': {}}"#);
    assert_eq!(Json::from("x").to_text(), "x");
}

#[test]
fn an_update_keeps_the_places() {
    let mut object: JsonObject = [("a", 1), ("b", 2)]
        .map(|(key, value)| (key.to_owned(), Json::Integer(value.to_string())))
        .into_iter()
        .collect();
    object.update([("c".to_owned(), Json::Null), ("a".to_owned(), Json::Null)]);
    assert_eq!(Json::Object(object).print(), r#"{"a": null, "b": 2, "c": null}"#);
}

#[test]
fn many_entries_are_found_as_few_are() {
    let mut object = JsonObject::default();
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
        // JSON that `serde_json` accepts must be parsed to the same value. JSON that `serde_json`
        // rejects can be accepted here.
        prop_assert!(strict.is_none() || again == strict, "{:?}", printed);
    }
}

#[test]
fn escapes_are_resolved_in_strings_and_in_json_within_them() {
    for (json, expected) in [
        (r#"{"a": "b"}"#, r#"{"a": "b"}"#),
        (r#"{"a": "\u00dcbung"}"#, r#"{"a": "Übung"}"#),
        (r#"{"a":"say \"yes\"", "b" : 1.50}"#, r#"{"a":"say "yes"", "b" : 1.50}"#),
        (r#"["one\ntwo\ttabs \/ \\"]"#, "[\"one\ntwo\ttabs / \\\"]"),
        (r#""\ud83d\ude00 \ud83d!""#, "\"😀 \u{fffd}!\""),
        // JSON within a string, and JSON within a string of that JSON. The nested JSON may contain
        // NaN, which only Python accepts.
        (r#"{"a": "{\"b\": \"\\u00dc\", \"c\": NaN}"}"#, r#"{"a": "{"b": "Ü", "c": NaN}"}"#),
        (r#"{"a": "{\"b\": \"[\\\"\\\\u00dc\\\"]\"}"}"#, r#"{"a": "{"b": "["Ü"]"}"}"#),
        (r#"{"a": "\"gpt-4\"", "b": "\"C:\\\\new\""}"#, r#"{"a": ""gpt-4"", "b": ""C:\new""}"#),
        // Texts that only look like JSON are left alone.
        (r#"{"a": "C:\\new"}"#, r#"{"a": "C:\new"}"#),
        (r#"{"a": "{C:\\new}"}"#, r#"{"a": "{C:\new}"}"#),
        (r#"{"a": "\"so\" he said \\n"}"#, r#"{"a": ""so" he said \n"}"#),
        // Invalid JSON.
        (r#"{"a": "\x", "b": "\""#, r#"{"a": "\x", "b": "\""#),
        (r"\", r"\"),
        ("\"\\", "\"\\"),
    ] {
        assert_eq!(unescaped(json), expected, "{json}");
    }
}

/// Every level of nesting doubles the number of backslashes before quotes, so even long texts
/// contain only a few levels.
#[test]
fn the_levels_that_are_resolved_are_bounded() {
    let nested = (0..12).fold("\"Ü\"".to_owned(), |text, _| Json::from(&*text).print());
    let resolved = unescaped(&nested).into_owned();
    assert!(resolved.len() < nested.len() && !resolved.contains('Ü'), "{}", resolved.len());
    let shallow = (0..8).fold("\"Ü\"".to_owned(), |text, _| Json::from(&*text).print());
    assert_eq!(unescaped(&shallow), format!("{0}\"Ü\"{0}", "\"".repeat(8)));
}
