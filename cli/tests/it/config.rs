//! `mlflow-serverless config`: settings are displayed, changed and effective.

use std::path::Path;
use std::process::{Command, Output};

use embedded_engine::Engine;
use entities::workspaces::Workspaces;
use mlflow_api::Workspace;
use table::Table;

use crate::program::{Program, ask};

/// Runs the program with these arguments on the data in a directory.
fn config(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
    command.arg("config").args(arguments).arg("--data").arg(data).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs the command, which has to succeed, and returns its output.
fn said(data: &Path, arguments: &[&str]) -> String {
    let output = config(data, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs the command, which has to fail, and returns the output of both streams.
fn refused(data: &Path, arguments: &[&str]) -> String {
    let output = config(data, arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stdout) + &text(&output.stderr)
}

/// Returns the displayed values of a setting, each preceded by the server, experiment or workspace
/// that it applies to.
fn shown(data: &Path, setting: &str) -> Vec<String> {
    let shown = said(data, &["show"]);
    let lines = shown.lines().filter_map(|line| line.strip_prefix(setting)?.strip_prefix(' '));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Tests a reader that closes the pipe after the first line, as `| head -1` does.
#[test]
fn a_reader_that_has_gone_ends_no_command() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
    let output = command.args(["config", "list"]).stdout(writer).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn what_cannot_be_written_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
    let output = command.args(["config", "list"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("mlflow-serverless: cannot print: "), "{said}");
}

#[tokio::test]
async fn settings_are_shown_and_set() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let serve = || Program::start(&["serve", "--data", data.to_str().unwrap(), "--port", "0", "--no-ui"]);
    // Starting the server creates the default experiment.
    serve().address();
    {
        let engine = Engine::open(data).unwrap();
        let team = Workspace::parse("team-a").unwrap();
        Workspaces::new(Table::new(engine.client(), "mlflow"))
            .create(&team, &entities::workspaces::WorkspaceChange::default())
            .await
            .unwrap();
    }
    assert_eq!(shown(data, "deleted-retention"), ["server off (default)"]);
    assert_eq!(shown(data, "indexed-texts"), ["server attributes.run_name (default)"]);
    assert_eq!(shown(data, "layout"), ["server 8"]);

    // The command displays the change and its cost before it applies the change.
    let told = refused(data, &["set", "deleted-retention", "30d"]);
    assert!(told.contains("deleted-retention of the server: off -> 30d") && told.contains("35 write units"), "{told}");
    assert!(told.contains("nothing was changed. Repeat the command with --yes"), "{told}");
    assert_eq!(shown(data, "deleted-retention"), ["server off (default)"]);
    assert!(said(data, &["set", "deleted-retention", "30d", "--yes"]).ends_with("The change was applied.\n"));
    assert_eq!(shown(data, "deleted-retention"), ["server 30d"]);
    assert!(said(data, &["set", "deleted-retention", "30d"]).contains("already has this value"));
    said(data, &["unset", "deleted-retention", "--yes"]);
    assert_eq!(shown(data, "deleted-retention"), ["server off (default)"]);

    assert_eq!(shown(data, "metric-retention"), ["server off (default)"]);
    assert!(refused(data, &["set", "metric-retention", "365d"]).contains("for each KB that is removed"));
    said(data, &["set", "metric-retention", "365d", "--yes"]);
    assert_eq!(shown(data, "metric-retention"), ["server 365d"]);
    assert_eq!(shown(data, "deleted-retention"), ["server off (default)"]);

    assert_eq!(shown(data, "metric-archive"), ["server 90d (default)"]);
    said(data, &["set", "metric-archive", "off", "--yes"]);
    assert_eq!(shown(data, "metric-archive"), ["server off"]);
    said(data, &["unset", "metric-archive", "--yes"]);
    assert_eq!(shown(data, "metric-archive"), ["server 90d (default)"]);

    said(data, &["set", "trace-retention", "90d", "--yes"]);
    said(data, &["set", "trace-retention", "12h", "--experiment", "0", "--yes"]);
    assert_eq!(shown(data, "trace-retention"), ["server 90d", "experiment 0 12h"]);
    {
        let program = serve();
        let address = program.address();
        let got = ask(&address, "GET /api/2.0/mlflow/experiments/get?experiment_id=0", &format!("host: {address}\r\n"));
        assert!(got.contains(r#"{"key":"mlflow.trace.retention","value":"12h"}"#), "{got}");
    }
    let told = refused(data, &["unset", "trace-retention", "--experiment", "0"]);
    assert!(
        told.contains("of all experiments without") || told.contains("of experiment 0 that began before"),
        "{told}"
    );
    said(data, &["unset", "trace-retention", "--experiment", "0", "--yes"]);
    assert_eq!(shown(data, "trace-retention"), ["server 90d"]);

    assert_eq!(shown(data, "trace-archival"), ["server 30d (default)"]);
    said(data, &["set", "trace-archival", "off", "--yes"]);
    said(data, &["set", "trace-archival", "7d", "--workspace", "team-a", "--yes"]);
    said(data, &["set", "trace-archival-location", "s3://bucket/x", "--yes"]);
    said(data, &["set", "trace-archival-allowlist", "17", "0", "--yes"]);
    said(data, &["set", "trace-archival-batch", "500", "--yes"]);
    assert_eq!(shown(data, "trace-archival"), ["server off", "workspace team-a 7d"]);
    assert_eq!(shown(data, "trace-archival-location"), ["server s3://bucket/x"]);
    assert_eq!(shown(data, "trace-archival-allowlist"), ["server 0 17"]);
    assert_eq!(shown(data, "trace-archival-batch"), ["server 500"]);
    said(data, &["unset", "trace-archival", "--workspace", "team-a", "--yes"]);
    for setting in ["trace-archival", "trace-archival-location", "trace-archival-allowlist", "trace-archival-batch"] {
        said(data, &["unset", setting, "--yes"]);
    }
    assert_eq!(shown(data, "trace-archival"), ["server 30d (default)"]);
    assert_eq!(shown(data, "trace-archival-location"), ["server off (default)"]);
    assert_eq!(shown(data, "trace-archival-allowlist"), ["server none (default)"]);

    said(data, &["set", "daily-runs", "100", "--workspace", "team-a", "--yes"]);
    said(data, &["set", "daily-bytes", "5000", "--workspace", "team-a", "--yes"]);
    said(data, &["unset", "daily-runs", "--workspace", "team-a", "--yes"]);
    assert_eq!(shown(data, "daily-runs"), Vec::<String>::new());
    assert_eq!(shown(data, "daily-bytes"), ["workspace team-a 5000"]);

    // The change is not applied here, because that would take three minutes.
    let told = refused(data, &["set", "indexed-texts", "tags.note", "params.*"]);
    assert!(
        told.contains("attributes.run_name -> tags.note params.*") && told.contains("35 write units per run"),
        "{told}"
    );
    let told = refused(data, &["set", "indexed-texts", "tags.note", "--experiment", "0"]);
    assert!(
        told.contains("indexed-texts of the experiment 0: not set -> tags.note")
            && told.contains("About 0 write units for the 0 runs of this experiment"),
        "{told}"
    );
    let told = refused(data, &["set", "indexed-values", "none", "--experiment", "77"]);
    assert!(told.contains("No Experiment with id=77 exists"), "{told}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, sentence) in [
        (&["set", "retention", "30d"][..], "there is no setting retention. The settings are deleted-retention"),
        (&["set", "layout", "8"], "layout cannot be set"),
        (&["set", "daily-runs", "5"], "select one with --workspace"),
        (&["set", "daily-runs", "5", "--experiment", "0"], "cannot be set for an experiment"),
        (&["set", "deleted-retention", "30d", "--workspace", "team-a"], "cannot be set for a workspace"),
        (&["set", "deleted-retention", "soon"], "Could not parse any time information from 'soon'"),
        (&["set", "indexed-values", "note"], "no field of a run can match"),
        (&["set", "daily-runs", "many", "--workspace", "team-a"], "many is neither a non-negative number nor off"),
        (&["set", "trace-retention", "1h", "--experiment", "x"], "Invalid experiment"),
        (&["set", "trace-archival", "1d12h"], "Trace archival retention must be in the form"),
        (&["set", "trace-archival-location", "gs://bucket/x"], "the server's artifact root or a directory below it"),
        (&["set", "daily-runs", "5", "--workspace", "nobody"], "nobody"),
    ] {
        let told = refused(directory.path(), arguments);
        assert!(told.contains(sentence), "{arguments:?}: {told}");
    }
}

mod generated {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    const BEGIN: &str = "<!-- the list of `mlflow-serverless config list`, written by `make docs`: begin -->\n";
    const END: &str = "<!-- end -->";

    #[test]
    fn the_guide_has_the_list_of_settings() {
        let list = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless")).args(["config", "list"]).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/operate.md");
        let guide = fs::read_to_string(&path).unwrap();
        let (head, rest) = guide.split_once(BEGIN).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let expected = format!("{head}{BEGIN}{list}{END}{tail}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        assert!(guide == expected || std::env::var_os("UPDATE_DOCS").is_some(), "run `make docs`");
    }
}
