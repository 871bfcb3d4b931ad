//! The log line of a function that panics. The test runs its own binary a second time, and the
//! second process panics.

use std::process::Command;

use serde_json::Value;

/// Environment variable that is set in the child process, which panics.
const PANICS: &str = "TEST_PANICS";

#[test]
fn a_panic_is_logged_as_an_error() {
    if std::env::var(PANICS).is_ok() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(domain::lambda::logged(async { panic!("a \"quote\" {}", 7) })).unwrap();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", "a_panic_is_logged_as_an_error", "--nocapture"]);
    let output = child.env(PANICS, "1").env("AWS_LAMBDA_LOG_LEVEL", "ERROR").output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [line] = lines.as_slice() else { panic!("{text}") };
    assert_eq!((&line["level"], &line["fields"]["message"]), (&"ERROR".into(), &"panicked".into()));
    assert_eq!(line["fields"]["panic"], "a \"quote\" 7");
    assert!(line["fields"]["location"].as_str().unwrap().contains("panic_line.rs:"), "{line}");
    assert!(line["timestamp"].is_string(), "{line}");
}
