//! Compares the bodies with those of MLflow 3.17.2, which Python has written to `bodies.jsonl`.

use super::{EventData, WebhookEvent, event_body, example_body, timestamp_text};

/// The time of all bodies with a fraction, in ms: 2026-02-03T04:05:06.007.
const TIME: i64 = 1_770_091_506_007;
/// The lines of the file: the examples in the order of [`WebhookEvent::ALL`], then the events of
/// [`events`].
const BODIES: &str = include_str!("bodies.jsonl");

fn tags(tags: &[(&str, &str)]) -> Vec<(String, String)> {
    tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn examples_are_those_of_mlflow() {
    for (event, expected) in WebhookEvent::ALL.iter().zip(BODIES.lines()) {
        assert_eq!(example_body(*event, TIME, Some("team-a")), expected);
    }
}

#[test]
fn events_are_written_as_in_python() {
    let all = tags(&[
        ("mlflow.prompt.is_prompt", "TRUE"),
        ("_mlflow_prompt_type", "chat"),
        ("b", "1"),
        ("a", "2"),
        ("b", "3"),
    ]);
    let odd = tags(&[("k \"\\/\u{8}\u{c}\n\r\t\u{1}\u{7f}\u{e9}\u{2028}\u{1f389}", "\u{0}<>&'\u{ffff}")]);
    let with_text = tags(&[("mlflow.prompt.is_prompt", "true"), ("mlflow.prompt.text", "Hi {{ n }}\n"), ("t", "u")]);
    let none = tags(&[]);
    let data = [
        EventData::Model { is_prompt: true, name: "p", tags: &all, description: "" },
        EventData::Model { is_prompt: false, name: "m\u{fc}", tags: &odd, description: "d" },
        EventData::Model { is_prompt: false, name: "m", tags: &all, description: "" },
        EventData::ModelVersion {
            name: "m",
            version: 12,
            source: "s3://b/\u{e9}",
            run_id: None,
            tags: &none,
            description: "",
        },
        EventData::ModelVersion { name: "m", version: 2, source: "s", run_id: Some(""), tags: &odd, description: "x" },
        EventData::PromptVersion { name: "p", version: 1, tags: &with_text, description: "" },
        EventData::PromptVersion { name: "p", version: 2, tags: &all, description: "d" },
        EventData::VersionTagSet { is_prompt: false, name: "m", version: "01", key: "k", value: "" },
        EventData::AliasCreated { is_prompt: true, name: "p", alias: "\u{fc}", version: " 1" },
    ];
    let lines: Vec<_> = BODIES.lines().skip(WebhookEvent::ALL.len()).collect();
    assert_eq!(lines.len(), data.len());
    for (data, expected) in data.iter().zip(lines) {
        assert_eq!(event_body(data, TIME - 7, None), expected);
    }
}

#[test]
fn times_are_written_as_in_python() {
    assert_eq!(timestamp_text(TIME), "2026-02-03T04:05:06.007000+00:00");
    assert_eq!(timestamp_text(TIME - 7), "2026-02-03T04:05:06+00:00");
    assert_eq!(timestamp_text(0), "1970-01-01T00:00:00+00:00");
}
