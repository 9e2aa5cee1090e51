//! A streamable HTTP server that answers as a test says and remembers what it was asked. Raw TCP, so that it can misbehave in every way.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Long enough for a loaded machine; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// One request, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
    /// Which connection it came on.
    pub(crate) connection: usize,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The method of the message, else that of HTTP.
    pub(crate) fn name(&self) -> String {
        self.message()["method"].as_str().unwrap_or(&self.method).to_owned()
    }

    /// The text of the id.
    pub(crate) fn id(&self) -> String {
        self.message()["id"].to_string()
    }
}

/// One step of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(String),
    Wait(Duration),
    /// Keeps the connection until the client leaves.
    Hold,
    Cut,
}

pub(crate) type Reply = Vec<Step>;

/// A whole response.
pub(crate) fn respond(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
    let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (headers, length) = (headers.concat(), body.len());
    vec![Step::Write(format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\n\r\n{body}"))]
}

pub(crate) fn json_body(status: u16, body: &str) -> Reply {
    respond(status, &[("content-type", "application/json")], body)
}

/// The result of what was asked.
pub(crate) fn result(asked: &Asked, result: &str) -> Reply {
    json_body(200, &message(asked, result))
}

/// The message that answers what was asked.
pub(crate) fn message(asked: &Asked, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{}}}"#, asked.id())
}

/// The head of a stream of events, which ends with the connection.
pub(crate) fn stream(steps: Vec<Step>) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    [vec![Step::Write(head.to_owned())], steps].concat()
}

pub(crate) fn event(data: &str) -> Step {
    Step::Write(format!("data: {data}\n\n"))
}

type Answer = dyn Fn(&Asked) -> Option<Reply> + Send + Sync;

#[derive(Clone)]
pub(crate) struct HttpServer(Arc<Inner>);

struct Inner {
    port: u16,
    modern: bool,
    asked: Mutex<Vec<Asked>>,
    open: Mutex<usize>,
    accepted: Mutex<usize>,
    sessions: Mutex<Vec<String>>,
    answer: Box<Answer>,
    /// Everything that serves.
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl HttpServer {
    /// A server of 2025-11-25 with sessions; `answer` may answer otherwise than it would.
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::of(false, answer).await
    }

    /// A server of 2026-07-28 alone.
    pub(crate) async fn modern(answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::of(true, answer).await
    }

    async fn of(modern: bool, answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self(Arc::new(Inner {
            port: listener.local_addr().unwrap().port(),
            modern,
            asked: Mutex::default(),
            open: Mutex::default(),
            accepted: Mutex::default(),
            sessions: Mutex::default(),
            answer: Box::new(answer),
            tasks: Mutex::default(),
        }));
        server.listen(listener);
        server
    }

    fn listen(&self, listener: TcpListener) {
        let server = self.clone();
        let accepting = tokio::spawn(async move { server.accept(listener).await });
        self.0.tasks.lock().unwrap().push(accepting);
    }

    /// Cuts every connection; further ones are refused until it is started again.
    pub(crate) async fn stop(&self) {
        let tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap());
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
        *self.0.open.lock().unwrap() = 0;
    }

    pub(crate) async fn start_again(&self) {
        self.listen(TcpListener::bind(("127.0.0.1", self.0.port)).await.unwrap());
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.0.port)
    }

    /// Everything asked under this name, in order.
    pub(crate) fn asked(&self, name: &str) -> Vec<Asked> {
        self.all().into_iter().filter(|asked| asked.name() == name).collect()
    }

    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.asked.lock().unwrap().clone()
    }

    /// Connections that are open at this moment.
    pub(crate) fn open(&self) -> usize {
        *self.0.open.lock().unwrap()
    }

    /// As after a restart.
    pub(crate) fn forget(&self) {
        self.0.sessions.lock().unwrap().clear();
    }

    /// Waits for what comes about soon.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < PATIENCE, "did not come about: {what}; it was asked {:#?}", self.all());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn accept(self, listener: TcpListener) {
        while let Ok((socket, _)) = listener.accept().await {
            let server = self.clone();
            *server.0.open.lock().unwrap() += 1;
            *server.0.accepted.lock().unwrap() += 1;
            let connection = *server.0.accepted.lock().unwrap();
            let serving = tokio::spawn(async move {
                server.serve(socket, connection).await;
                *server.0.open.lock().unwrap() -= 1;
            });
            self.0.tasks.lock().unwrap().push(serving);
        }
    }

    async fn serve(&self, mut socket: TcpStream, connection: usize) {
        socket.set_nodelay(true).unwrap();
        let mut read = Vec::new();
        while let Some(asked) = request(&mut socket, &mut read, connection).await {
            self.0.asked.lock().unwrap().push(asked.clone());
            let reply = (self.0.answer)(&asked).unwrap_or_else(|| self.usual(&asked));
            let is_stream =
                matches!(reply.first(), Some(Step::Write(head)) if head.contains("connection: close"));
            for step in reply {
                match step {
                    Step::Write(text) => {
                        if socket.write_all(text.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                    Step::Wait(time) => tokio::time::sleep(time).await,
                    Step::Hold => {
                        let mut rest = [0; 1024];
                        while socket.read(&mut rest).await.is_ok_and(|length| length > 0) {}
                        return;
                    }
                    Step::Cut => return,
                }
            }
            if is_stream {
                return;
            }
        }
    }

    fn usual(&self, asked: &Asked) -> Reply {
        let known = asked
            .header("mcp-session-id")
            .map(|id| self.0.sessions.lock().unwrap().iter().any(|known| known == id));
        if known == Some(false) {
            return respond(404, &[], "no such session");
        }
        let message = asked.message();
        let tools = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;
        match asked.name().as_str() {
            "initialize" if self.0.modern => {
                let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32022, "message": "old",
                    "data": {"supported": ["2026-07-28"]}}});
                json_body(400, &error.to_string())
            }
            "initialize" => {
                let mut sessions = self.0.sessions.lock().unwrap();
                let session = format!("session-{}", self.asked("initialize").len());
                sessions.push(session.clone());
                let welcome = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}"#;
                let body = self::message(asked, welcome);
                respond(200, &[("content-type", "application/json"), ("mcp-session-id", &session)], &body)
            }
            "server/discover" if self.0.modern => result(
                asked,
                r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}"#,
            ),
            "tools/list" => result(asked, tools),
            "tools/call" => result(asked, &json!({"content": [], "got": message["params"]}).to_string()),
            "GET" => respond(405, &[], ""),
            "DELETE" => respond(200, &[], ""),
            _ => respond(202, &[], ""),
        }
    }
}

/// The next request on a connection, `None` when the client has left.
async fn request(socket: &mut TcpStream, read: &mut Vec<u8>, connection: usize) -> Option<Asked> {
    let head = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break read.drain(..end + 4).collect::<Vec<_>>();
        }
        if socket.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    while read.len() < length {
        if socket.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(read.drain(..length).collect()).unwrap();
    Some(Asked { method, path, headers, body, at: Instant::now(), connection })
}
