//! `admin link`, `admin identities` and `admin unlink`.

use std::process::Command;

const ISSUER: &str = "https://id.example";

/// Runs `admin` over a directory with data. Returns its output, and whether it succeeded.
fn admin(data: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
    let output = command.arg("admin").args(arguments).args(["--data", data]).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn an_operator_links_lists_and_unlinks_identities() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let said = |arguments: &[&str], expected: &str| {
        let (is_done, text) = admin(data, arguments);
        assert!(is_done && text.trim_end() == expected, "{arguments:?}: {text}");
    };
    let refused = |arguments: &[&str], part: &str| {
        let (is_done, text) = admin(data, arguments);
        assert!(!is_done && text.contains(part), "{arguments:?}: {text}");
    };
    refused(&["link", "ann", ISSUER, "1"], "ann");
    said(&["link", "ann", ISSUER, "1", "--create"], "Linked 1 of https://id.example to `ann`.");
    said(&["link", "ann", ISSUER, "2", "--create"], "Linked 2 of https://id.example to `ann`.");
    said(&["link", "bob", ISSUER, "3", "--create"], "Linked 3 of https://id.example to `bob`.");
    refused(&["link", "bob", ISSUER, "1"], "mlflow-serverless admin unlink ann https://id.example 1");
    said(&["identities"], "ann\thttps://id.example\t1\nann\thttps://id.example\t2\nbob\thttps://id.example\t3");
    said(&["unlink", "ann", ISSUER, "1"], "Unlinked 1 of https://id.example from `ann`. Its sessions have ended.");
    refused(&["unlink", "ann", ISSUER, "1"], "does not have this identity");
    said(&["identities", "ann"], "ann\thttps://id.example\t2");
    said(&["unlink", "ann", ISSUER, "2"], "Unlinked 2 of https://id.example from `ann`. Its sessions have ended.");
    said(&["identities", "ann"], "There are no identities.");
    refused(&["identities", "carl"], "carl");
}
