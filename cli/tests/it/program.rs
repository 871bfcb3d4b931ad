//! The program itself: where it listens, and whom it answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use embedded_engine::Engine;
use entities::attributes::LAYOUT;
use entities::layout::CURRENT;
use key_schema::rows;
use table::{Condition, Item, Table, number};

/// How long the program is waited for. A busy machine takes long for what takes an idle one a moment.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// The program, until this is dropped.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || output.lines().try_for_each(|line| sender.send(line.unwrap())));
        Self { child, lines }
    }

    /// The next line of its standard output.
    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The address it prints.
    pub(crate) fn address(&self) -> String {
        let address = self.line().strip_prefix("http://").unwrap().to_owned();
        assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{address}");
        address
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Head and body of the answer to a request with these headers.
fn ask(address: &str, request: &str, headers: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(connection, "{request} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.to_lowercase()
}

#[test]
fn serve_says_which_free_port_it_took_and_answers_no_page_of_another_origin() {
    let program = Program::start(&["serve", "--memory", "--port", "0"]);
    let address = program.address();
    let host = format!("host: {address}\r\n");
    assert!(ask(&address, "GET /health", &host).starts_with("http/1.1 200"));
    for (request, header) in [
        ("GET /health", "origin: https://evil.example\r\n"),
        ("GET /api/2.0/mlflow/experiments/search?max_results=9", "sec-fetch-site: cross-site\r\n"),
        (
            "OPTIONS /api/2.0/mlflow/runs/create",
            "origin: http://localhost:1\r\naccess-control-request-method: POST\r\n",
        ),
    ] {
        let answer = ask(&address, request, &format!("{host}{header}"));
        assert!(answer.starts_with("http/1.1 403") && !answer.contains("access-control-"), "{answer}");
    }
    assert!(ask(&address, "GET /health", "host: evil.example\r\n").starts_with("http/1.1 403"));
}

#[tokio::test]
async fn data_of_a_later_version_is_refused_by_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    let table = Table::new(engine.client(), "mlflow");
    table.create_if_missing().await.unwrap();
    let later = Item::new(rows::Config::key(&"layout".into())).with(LAYOUT, number(CURRENT + 1));
    table.put(later, &Condition::Always).await.unwrap();
    drop((table, engine));
    for arguments in [&["serve", "--no-ui", "--port", "0"][..], &["engine", "--port", "0"], &["reindex"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
        let output = command.args(arguments).args(["--data", data]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("written by a later version"), "{arguments:?}: {said}");
    }
}

#[test]
fn the_engine_says_where_it_listens_and_with_what_key() {
    let program = Program::start(&["engine", "--memory", "--port", "0"]);
    let address = program.address();
    let id = program.line().strip_prefix("AWS_ACCESS_KEY_ID=").unwrap().to_owned();
    let secret = program.line().strip_prefix("AWS_SECRET_ACCESS_KEY=").unwrap().to_owned();
    assert_eq!((id.len(), secret.len()), (20, 40));
    let other = Program::start(&["engine", "--memory", "--port", "0"]);
    other.address();
    assert_ne!(other.line().strip_prefix("AWS_ACCESS_KEY_ID=").unwrap(), id, "each start has a key of its own");

    let scan =
        "content-type: application/x-amz-json-1.0\r\nx-amz-target: DynamoDB_20120810.Scan\r\ncontent-length: 2\r\n";
    let anybody = "authorization: AWS4-HMAC-SHA256 Credential=any/20260101/any/dynamodb/aws4_request, \
                   SignedHeaders=host;x-amz-date;x-amz-target, Signature=0\r\nx-amz-date: 20260101T000000Z\r\n";
    let answer = ask(&address, "POST /", &format!("host: {address}\r\n{scan}{anybody}\r\n{{}}"));
    assert!(answer.starts_with("http/1.1 403") && answer.contains("unrecognizedclientexception"), "{answer}");
}
