//! Servers and resolvers with scripted responses.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::resolver::Resolver;

/// What a server sends after it has received a request.
#[derive(Clone)]
struct Script {
    begin: Vec<u8>,
    /// Bytes that are sent repeatedly after `begin`, and the pause after each repetition.
    again: Option<(Vec<u8>, Duration)>,
    is_silent: bool,
}

/// A server that accepts any number of connections, and reads one request from each. It stops when
/// it is dropped.
pub(super) struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
    received: Arc<Mutex<String>>,
    closed: watch::Receiver<usize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts a server that sends these bytes, and then closes the connection.
    pub(super) async fn answering(bytes: &[u8]) -> Self {
        Self::start(Script { begin: bytes.to_vec(), again: None, is_silent: false }).await
    }

    /// Starts a server that sends `begin`, and then repeats `piece` every 20 ms until the client
    /// disconnects.
    pub(super) async fn dripping(begin: &[u8], piece: &[u8]) -> Self {
        let again = Some((piece.to_vec(), Duration::from_millis(20)));
        Self::start(Script { begin: begin.to_vec(), again, is_silent: false }).await
    }

    /// Starts a server that sends `begin`, and then repeats `piece` without a pause until the
    /// client disconnects.
    pub(super) async fn endless(begin: &[u8], piece: &[u8]) -> Self {
        let again = Some((piece.to_vec(), Duration::ZERO));
        Self::start(Script { begin: begin.to_vec(), again, is_silent: false }).await
    }

    /// Starts a server that sends nothing.
    pub(super) async fn silent() -> Self {
        Self::start(Script { begin: Vec::new(), again: None, is_silent: true }).await
    }

    /// Returns a port on which nothing listens.
    pub(super) async fn unused_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
    }

    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(String::new())));
        let (sender, closed) = watch::channel(0);
        let (counter, text) = (Arc::clone(&connections), Arc::clone(&received));
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                // The client may close the connection at any time.
                let _ = serve(&mut stream, &script, &text).await;
                drop(stream);
                sender.send_modify(|closed| *closed += 1);
            }
        });
        Self { port, connections, received, closed, task }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self, target: &str) -> String {
        format!("http://127.0.0.1:{}{target}", self.port)
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until a connection has been closed.
    pub(super) async fn wait_until_closed(&self) {
        self.closed.clone().wait_for(|closed| *closed > 0).await.unwrap();
    }

    /// Returns the request of the first connection.
    pub(super) async fn received(&self) -> String {
        self.wait_until_closed().await;
        self.received.lock().unwrap().clone()
    }
}

async fn serve(stream: &mut TcpStream, script: &Script, received: &Mutex<String>) -> io::Result<()> {
    let mut text = String::new();
    // The request's body is the only part that ends with a brace.
    while !text.ends_with('}') {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    *received.lock().unwrap() = text;
    stream.write_all(&script.begin).await?;
    if script.is_silent {
        stream.read_u8().await?;
    }
    while let Some((piece, pause)) = &script.again {
        stream.write_all(piece).await?;
        if !pause.is_zero() {
            tokio::time::sleep(*pause).await;
        }
    }
    stream.shutdown().await
}

/// A resolver that returns the next of its answers on each call, and fails once there are none
/// left.
pub(super) struct FixedResolver {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Arc<AtomicUsize>,
    is_silent: bool,
}

impl FixedResolver {
    pub(super) fn answering(answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let answers = Mutex::new(answers.iter().map(parse).collect());
        Self { answers, asked: Arc::default(), is_silent: false }
    }

    /// Returns a resolver that never answers.
    pub(super) fn silent() -> Self {
        Self { is_silent: true, ..Self::answering(&[]) }
    }

    /// Returns the counter of `resolve` calls.
    pub(super) fn asked(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.asked)
    }
}

impl Resolver for FixedResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        assert!(host.parse::<IpAddr>().is_err(), "{host} is an address");
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.lock().unwrap().pop_front();
        let is_silent = self.is_silent;
        Box::pin(async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            answer.ok_or_else(|| io::Error::other("no such host"))
        })
    }
}
