//! The program itself: its addresses, and the requests that it accepts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use embedded_engine::Engine;
use entities::attributes::LAYOUT;
use entities::layout::CURRENT_LAYOUT;
use key_schema::rows;
use table::{Condition, Item, Table, number};

/// Timeout for the program. It is long, because work that takes an idle machine a moment can take a
/// busy one long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// A running program, which is killed when this value is dropped.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::with(arguments, &[])
    }

    /// Starts the program with these additional environment variables.
    pub(crate) fn with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::of(env!("CARGO_BIN_EXE_mlflow-serverless"), arguments, environment)
    }

    /// Starts another version of the program.
    pub(crate) fn of(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || output.lines().try_for_each(|line| sender.send(line.unwrap())));
        Self { child, lines }
    }

    /// Returns the next line of standard output.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address that the program prints.
    pub(crate) fn address(&self) -> String {
        let address = self.line().strip_prefix("http://").unwrap().to_owned();
        assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{address}");
        address
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the head and body of the response to a request with these headers, in lower case.
pub(crate) fn ask(address: &str, request: &str, headers: &str) -> String {
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
    let counters = ask(&address, "GET /metrics", &host);
    assert!(counters.contains(r#"mlflow_requests_total{route="get /health",status="200"} 1"#), "{counters}");
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
    let search = "GET /api/2.0/mlflow/experiments/search?max_results=9";
    assert!(ask(&address, search, "host: evil.example\r\n").starts_with("http/1.1 403"));
    assert!(ask(&address, "GET /health", "host: evil.example\r\n").starts_with("http/1.1 200"));
}

/// Tests a health check without the server's name, as load balancers send it.
#[test]
fn health_is_answered_without_a_host() {
    let program = Program::start(&["serve", "--memory", "--port", "0"]);
    let address = program.address();
    for (path, expected) in [("/health", "200"), ("/version", "200"), ("/api/2.0/mlflow/experiments/get", "403")] {
        let mut connection = TcpStream::connect(&address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.0 {expected}")), "{path}: {answer}");
    }
}

/// Returns the head of the next response of a connection, in lower case. Also reads its body.
fn next_answer(connection: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(connection.read_line(&mut head).unwrap(), 0, "the connection has ended: {head}");
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    connection.read_exact(&mut body).unwrap();
    head
}

#[test]
fn a_body_that_nobody_reads_ends_no_connection_without_a_word() {
    let program = Program::start(&["serve", "--memory", "--port", "0"]);
    let address = program.address();
    let host = format!("host: {address}\r\n");
    let mut connection = BufReader::new(TcpStream::connect(&address).unwrap());
    connection.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    for (request, length, sent, status) in [
        ("POST /nothing", 70_000, 70_000, "404"),
        ("DELETE /health", 70_000, 70_000, "405"),
        ("POST /api/2.0/mlflow/runs/create", 70_000, 70_000, "400"),
        ("GET /health", 0, 0, "200"),
        // The rest of the body is too long to be read and discarded, so the response announces that
        // the connection closes.
        ("POST /nothing", 100 << 20, 1_000, "404"),
    ] {
        write!(connection.get_mut(), "{request} HTTP/1.1\r\n{host}content-length: {length}\r\n\r\n").unwrap();
        connection.get_mut().write_all(&vec![b'x'; sent]).unwrap();
        let head = next_answer(&mut connection);
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{request}: {head}");
        assert_eq!(head.contains("connection: close"), sent < length, "{request}: {head}");
    }
}

/// Runs the program with these arguments and with no environment variables except the given ones.
/// The program has to fail. Returns its error output.
pub(crate) fn refusal(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlflow-serverless"));
    command.env_clear().env("AWS_EC2_METADATA_DISABLED", "true").envs(environment.iter().copied());
    let output = command.args(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn settings_that_make_no_sense_are_refused_with_a_sentence() {
    for (arguments, sentence) in [
        (&["serve", "--memory", "--allowed-host", "http://mlflow.ns.svc/mlflow"][..], "it contains more than a host"),
        (&["serve", "--memory", "--allowed-hosts", "a.example,*.*.example"], "a pattern must have exactly one"),
        (&["serve", "--memory", "--allowed-host", ""], "the host is missing"),
        (&["serve", "--dynamodb-endpoint", "dynamodb.eu-1.amazonaws.com"], "expected a URL such as https://dynamodb"),
        (&["serve", "--memory", "--table", "my table"], "a table name has 3 to 255"),
        (&["engine", "--memory", "--table", "t"], "a table name has 3 to 255"),
        (&["serve", "--memory", "--max-artifact-size", "0"], "0 is not in 1.."),
        (&["serve", "--memory", "--artifacts-presigned-only"], "requires artifacts in a bucket"),
        (&["serve", "--memory", "--artifact-root", "s3://"], "does not name a bucket"),
        (&["serve", "--memory", "--create-table"], "cannot be used with"),
        (&["serve", "--create-table"], "--dynamodb-endpoint"),
        (&["serve", "--memory", "--host", "0.0.0.0"], "choose --auth basic"),
        (&["serve", "--memory", "--host", "0.0.0.0", "--auth", "none"], "--trusted-proxy"),
        (&["serve", "--memory", "--host", "::", "--auth", "basic"], "--plain-http"),
        (&["reindex", "--values", "tag.*"], "no field of a run can match"),
        (&["reindex", "--text", "note"], "no field of a run can match"),
    ] {
        let said = refusal(arguments, &[]);
        assert!(said.contains(sentence), "{arguments:?}: {said}");
    }
    let said = refusal(&["serve", "--memory"], &[("RUST_LOG", "warn,tower=loud")]);
    assert!(said.contains("RUST_LOG=warn,tower=loud is not a valid log filter"), "{said}");
}

/// Made-up credentials are only used for this machine. Elsewhere, the server would start and then
/// fail on each request.
#[test]
fn an_engine_elsewhere_is_asked_with_credentials_that_were_found() {
    let elsewhere = ["--dynamodb-endpoint", "http://192.0.2.1:1"];
    for command in ["serve", "gc", "reindex"] {
        let arguments = [&[command][..], &elsewhere].concat();
        let said = refusal(&arguments, &[("AWS_REGION", "eu-central-1")]);
        assert!(said.contains("no AWS credentials found for http://192.0.2.1:1."), "{command}: {said}");
        let said = refusal(&arguments, &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
        assert!(said.contains("no AWS region is configured"), "{command}: {said}");
    }
}

/// Uses `0.0.0.0`: on Linux it reaches the same machine, although it is not a loopback address.
#[test]
fn a_table_elsewhere_is_made_only_if_it_is_asked_for() {
    let engine = Program::start(&["engine", "--memory", "--port", "0"]);
    let address = engine.address().replace("127.0.0.1", "http://0.0.0.0");
    let (id, secret) = (engine.line(), engine.line());
    let keys = [id.split_once('=').unwrap(), secret.split_once('=').unwrap(), ("AWS_REGION", "local")];
    let arguments = ["serve", "--port", "0", "--no-ui", "--dynamodb-endpoint", &address];
    let mistyped = [&arguments[..], &["--table", "mistyped"]].concat();
    let said = refusal(&mistyped, &keys);
    assert!(said.contains(&format!("there is no table mistyped at {address}. --create-table creates it")), "{said}");
    assert!(refusal(&mistyped, &keys).contains("there is no table"), "the table was created");
    Program::with(&arguments, &keys).address();
    Program::with(&[&mistyped[..], &["--create-table"]].concat(), &keys).address();
    Program::with(&mistyped, &keys).address();
}

#[tokio::test]
async fn data_of_a_later_version_is_refused_by_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let engine = Engine::open(directory.path()).unwrap();
    let table = Table::new(engine.client(), "mlflow");
    table.create_if_missing().await.unwrap();
    let later = Item::new(rows::Config::key(&"layout".into())).with(LAYOUT, number(CURRENT_LAYOUT + 1));
    table.put(later, &Condition::Always).await.unwrap();
    drop((table, engine));
    let commands = [
        &["serve", "--no-ui", "--port", "0"][..],
        &["engine", "--port", "0"],
        &["reindex"],
        &["gc"],
        &["migrate"],
        &["config", "show"],
    ];
    for arguments in commands {
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
    assert_ne!(other.line().strip_prefix("AWS_ACCESS_KEY_ID=").unwrap(), id, "every start creates a new key");

    let scan =
        "content-type: application/x-amz-json-1.0\r\nx-amz-target: DynamoDB_20120810.Scan\r\ncontent-length: 2\r\n";
    let anybody = "authorization: AWS4-HMAC-SHA256 Credential=any/20260101/any/dynamodb/aws4_request, \
                   SignedHeaders=host;x-amz-date;x-amz-target, Signature=0\r\nx-amz-date: 20260101T000000Z\r\n";
    let answer = ask(&address, "POST /", &format!("host: {address}\r\n{scan}{anybody}\r\n{{}}"));
    assert!(answer.starts_with("http/1.1 403") && answer.contains("unrecognizedclientexception"), "{answer}");
}

/// Starts the program with a limit of this many file descriptors.
fn with_descriptors(descriptors: u32, arguments: &[&str]) -> Program {
    let limited = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
    let program = env!("CARGO_BIN_EXE_mlflow-serverless");
    Program::of("sh", &[&["-c", &limited, program][..], arguments].concat(), &[])
}

#[test]
fn connections_that_send_nothing_keep_nobody_out() {
    let program = with_descriptors(256, &["serve", "--memory", "--port", "0"]);
    let address = program.address();
    let half = |_| {
        let mut connection = TcpStream::connect(&address).unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(connection, "GET /health HTTP/1.1\r\nhost: x\r\n").unwrap();
        connection
    };
    let mut halves: Vec<_> = (0..300).map(half).collect();
    let host = format!("host: {address}\r\n");
    for _ in 0..3 {
        assert!(ask(&address, "GET /health", &host).starts_with("http/1.1 200"));
    }
    // The first connections were closed to make room for the last ones, which can still send the
    // rest of their requests.
    let ended = |connection: &mut TcpStream| connection.read(&mut [0; 1]).map_or(true, |bytes| bytes == 0);
    assert!(halves.iter_mut().take(200).all(ended));
    let last = halves.last_mut().unwrap();
    write!(last, "connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
