//! A session, its callers and its server, and what one step of a script does to them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use workflow_mcp::error::{ErrorCode, McpError};
use workflow_mcp::link::{FrameKind, Link, Receiver};
use workflow_mcp::policy::definition::{Definition, ToolFilter};
use workflow_mcp::policy::options::{Listens, Options, Protocol, Shutdown};
use workflow_mcp::session::{Asked, Event, Owner, Plan, Reason, Session, Welcome, connect_through};

use super::caller::{Call, Expected, slot, terms};
use super::memory::{LEAVES_WITHIN, Memory, Server};
use super::reader::messages;

/// The smallest that `maxMessageBytes` may be.
pub(crate) const LIMIT: usize = 1024;

/// As long as any deadline of these sessions.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// What the owner of the session heard.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) closed: usize,
    pub(crate) lists: Vec<String>,
}

struct Listener(Arc<Mutex<Heard>>);

impl Owner for Listener {
    fn heard(&self, event: Event) {
        let mut heard = self.0.lock().unwrap();
        match event {
            Event::Closed(_) => heard.closed += 1,
            Event::ToolsChanged(list) => heard.lists.push(list),
            Event::StderrLine(_)
            | Event::Log(_)
            | Event::ToolsPage(_)
            | Event::Warning { .. }
            | Event::InputRequired { .. } => {}
        }
    }
}

/// How the server behaves in the handshake; `Script` leaves it all to the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handshake {
    Legacy,
    ModernAlone,
    ModernByInitialize,
    Script,
}

pub(crate) type Started = Result<(Session, Welcome), McpError>;

pub(crate) struct Stage {
    pub(crate) link: Arc<Memory>,
    pub(crate) server: Server,
    pub(crate) heard: Arc<Mutex<Heard>>,
    pub(crate) session: Option<Session>,
    pub(crate) starting: Option<JoinHandle<Started>>,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) calls: Vec<Call>,
    handshake: Handshake,
    /// Frames that the server has looked at.
    seen: usize,
    /// Requests that it may answer: id and method.
    requests: Vec<(u64, String)>,
    pub(crate) is_closed: bool,
}

impl Stage {
    /// Connects, or begins to.
    pub(crate) async fn new(mode: u8) -> Self {
        let link = Memory::new();
        let heard = Arc::<Mutex<Heard>>::default();
        let (sender, receiver) = oneshot::channel::<Arc<dyn Receiver>>();
        let near = link.clone();
        let open = |_plan, inbox| {
            drop(sender.send(inbox));
            std::future::ready(Ok(near as Arc<dyn Link>))
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let owner = Arc::new(Listener(heard.clone()));
        let stopped = async { drop(stopped.await) };
        let starting = tokio::spawn(connect_through(open, plan(), owner, stopped));
        let server = Server::new(&link, receiver.await.unwrap(), LIMIT);
        let handshake =
            [Handshake::Legacy, Handshake::ModernAlone, Handshake::ModernByInitialize, Handshake::Script]
                [usize::from(mode % 4)];
        let mut stage = Self {
            link,
            server,
            heard,
            session: None,
            starting: Some(starting),
            stop: Some(stop),
            calls: Vec::new(),
            handshake,
            seen: 0,
            requests: Vec::new(),
            is_closed: false,
        };
        stage.catch_up().await;
        stage
    }

    /// Lets the session do what it can without time passing, and the server answer what it always answers.
    pub(crate) async fn catch_up(&mut self) {
        for _ in 0..8 {
            for _ in 0..6 {
                tokio::task::yield_now().await;
            }
            let news = self.link.read_from(self.seen);
            self.seen += news.len();
            let is_quiet = news.is_empty();
            for (kind, text) in news {
                let FrameKind::Request(id) = kind else { continue };
                let method = messages(&text)[0].method.unwrap().trim_matches('"').to_owned();
                if let Some(answer) = self.always(id, &method)
                    && self.server.is_at_start()
                {
                    self.server.write(answer.as_bytes()).await;
                }
                self.requests.push((id, method));
            }
            if self.starting.as_ref().is_some_and(JoinHandle::is_finished) {
                self.session = self.starting.take().unwrap().await.unwrap().ok().map(|(session, _)| session);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// What a server of this kind answers by itself.
    fn always(&self, id: u64, method: &str) -> Option<String> {
        const CAPABILITIES: &str = r#""capabilities":{"tools":{"listChanged":true}}"#;
        let body = match (method, self.handshake) {
            (_, Handshake::Script) => return None,
            ("initialize", Handshake::Legacy) => {
                format!(r#""result":{{"protocolVersion":"2025-11-25",{CAPABILITIES}}}"#)
            }
            ("initialize", Handshake::ModernByInitialize) => {
                format!(r#""result":{{"protocolVersion":"2026-07-28",{CAPABILITIES}}}"#)
            }
            ("initialize", Handshake::ModernAlone) => {
                r#""error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#.to_owned()
            }
            ("server/discover", _) => {
                format!(r#""result":{{"supportedVersions":["2026-07-28"],{CAPABILITIES}}}"#)
            }
            ("tools/list", _) => {
                r#""result":{"tools":[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":true},7]}"#
                    .to_owned()
            }
            ("subscriptions/listen", _) => {
                return Some(format!(
                    "{{\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}}\n",
                    of_subscription(id)
                ));
            }
            _ => return None,
        };
        Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}\n"))
    }

    /// One step; what it needs to know it takes from the script.
    pub(crate) async fn step(&mut self, step: u8, script: &mut impl Iterator<Item = u8>) {
        let mut byte = || script.next().unwrap_or_default();
        match step % 16 {
            0..=2 => {
                let length = usize::from(byte());
                let bytes: Vec<u8> = script.take(length).collect();
                self.server.write(&bytes).await;
            }
            3 => self.server.write(b"\n").await,
            4 | 5 => {
                let (whose, shape) = (byte(), byte());
                self.answer(whose, shape, false).await;
            }
            6 => {
                let (name, timeout, wants) = (byte(), byte(), byte());
                self.call_tool(["a", "b", "none"][usize::from(name % 3)], timeout, wants);
            }
            7 => {
                let timeout = byte();
                self.request(timeout);
            }
            8 => self.list_tools(),
            9 => {
                let which = byte();
                self.cancel(which);
            }
            10 => tokio::time::sleep(Duration::from_millis(u64::from(byte()) * 20)).await,
            11 => {
                let (kind, whose) = (byte(), byte());
                self.notify(kind, whose).await;
            }
            12 => self.ask(byte()).await,
            13 => match byte() % 8 {
                0 => self.close(),
                1 => self.server.leave().await,
                2 => self.stop = None,
                3 => self.answer(byte(), 0, true).await,
                _ => {}
            },
            14 => self.link.set_deaf(byte() % 2 == 0),
            _ => self.server.read_size = usize::from(byte()).wrapping_sub(1).max(1),
        }
        self.catch_up().await;
    }

    fn call_tool(&mut self, name: &str, timeout: u8, wants: u8) {
        let Some(session) = &self.session else { return };
        let (slot, settle) = slot();
        let hears_progress = wants.is_multiple_of(2);
        let terms = terms(&slot, timeout, hears_progress, wants.is_multiple_of(3));
        let meta = wants.is_multiple_of(5).then_some(r#"{"traceparent":"t"}"#);
        let id = session.call_tool(name, r#"{"x":"\ud800"}"#, Asked { terms, meta }, settle);
        self.calls.push(Call { id, slot, hears_progress });
    }

    fn request(&mut self, timeout: u8) {
        let Some(session) = &self.session else { return };
        let (slot, settle) = slot();
        let asked = Asked { terms: terms(&slot, timeout, false, false), meta: None };
        let id = session.request("resources/list", Some("{}"), asked, settle);
        self.calls.push(Call { id, slot, hears_progress: false });
    }

    fn list_tools(&mut self) {
        let Some(session) = &self.session else { return };
        let (slot, settle) = slot();
        let asked = Asked { terms: terms(&slot, 100, false, false), meta: None };
        drop(session.list_tools(asked, settle));
        self.calls.push(Call { id: None, slot, hears_progress: false });
    }

    fn cancel(&mut self, which: u8) {
        let Some(session) = &self.session else { return };
        let Some(call) = pick(&self.calls, which) else { return };
        let Some(id) = call.id else { return };
        let was_pending = call.is_pending();
        let is_cancelled = session.cancel(id);
        assert_eq!(is_cancelled, was_pending, "a call is given up exactly when it is pending");
        call.slot.lock().unwrap().is_cancelled |= is_cancelled;
    }

    fn close(&mut self) {
        if let Some(session) = &self.session {
            session.close(Reason::Closed);
            self.is_closed = true;
            // Callers are released first.
            assert!(
                self.calls.iter().all(|call| call.id.is_none() || !call.is_pending()),
                "a call is pending after the close"
            );
        }
    }

    /// Answers a request in one of many shapes. Where the answer is a line of its own, and somebody waits for it, it must arrive.
    /// With `is_last` the server leaves before it has ended the line.
    async fn answer(&mut self, whose: u8, shape: u8, is_last: bool) {
        let Some((id, method)) = pick(&self.requests, whose).cloned() else { return };
        let result = format!(r#"{{"for":{id},"text":"\"id\":1,\ud83d","n":1e400}}"#);
        let filler = "x".repeat(LIMIT);
        let (line, expected) = match shape % 16 {
            0 => (format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#), Expected::Result(result)),
            1 => (format!(r#"{{"result":{result},"id":"{id}"}}"#), Expected::Result(result)),
            2 => (format!("\u{feff}{{\"id\" : {id}.0, \"result\": {result} }} \r"), Expected::Result(result)),
            3 => (
                format!(r#"[{{"method":"x"}},{{"id":{id},"error":null,"result":{result}}},7]"#),
                Expected::Result(result),
            ),
            4 => (
                format!(r#"{{"id":{id},"error":{{"code":1.5,"message":"\ud800"}}}}"#),
                Expected::Error(ErrorCode::Rpc),
            ),
            5 => (format!(r#"{{"id":{id},"error":"text","result":{{}}}}"#), Expected::Error(ErrorCode::Rpc)),
            6 => {
                (format!(r#"{{"id":{id},"result":"{filler}"}}"#), Expected::Error(ErrorCode::MessageTooLarge))
            }
            7 => (
                format!(r#"{{"result":{{"id":1,"t":"\"id\":2{filler}"}},"jsonrpc":"2.0","id":{id}}}"#),
                Expected::Error(ErrorCode::MessageTooLarge),
            ),
            8 => (format!(r#"{{"id":{id},"result":{{}}"#), Expected::Nothing),
            9 => (format!(r#"{{"id":{},"result":{{}}}}"#, id + 1_000_000), Expected::Nothing),
            10 => (format!(r#"{{"id":"{id}x","result":{{}}}}"#), Expected::Nothing),
            11 => (r#"{"id":null,"error":{"code":-32700,"message":"m"}}"#.to_owned(), Expected::Unknown),
            12 => (r#"{"id":null,"result":{}}"#.to_owned(), Expected::Nothing),
            // The last of two equal members counts, as in JavaScript.
            13 => (
                format!(r#"{{"id":0,"result":0,"\u0069d":{id},"result":{result}}}"#),
                Expected::Result(result),
            ),
            14 => (
                format!(r#"{{"id":0,"result":[{{"id":1}},"{filler}"],"id":{id}}}"#),
                Expected::Error(ErrorCode::MessageTooLarge),
            ),
            _ => (format!(r#"{{"id":{id},"method":null,"result":{result}}}"#), Expected::Result(result)),
        };
        let is_own_line = self.server.is_at_start();
        let call = self.calls.iter().find(|call| call.id == Some(id) && call.is_pending());
        let slot = call.map(|call| call.slot.clone());
        self.server.write(line.as_bytes()).await;
        if is_last {
            self.server.leave().await;
        } else {
            self.server.write(b"\n").await;
        }
        if let Some(slot) = slot.filter(|_| is_own_line && (is_last || !self.server.is_gone)) {
            expected.check(&slot.lock().unwrap(), &method);
        }
    }

    async fn notify(&mut self, kind: u8, whose: u8) {
        let id = pick(&self.requests, whose).map_or(0, |(id, _)| *id);
        let params = match kind % 6 {
            0 => format!(r#""notifications/progress","params":{{"progressToken":{id},"progress":1}}"#),
            1 => r#""notifications/tools/list_changed""#.to_owned(),
            2 => format!(r#""notifications/tools/list_changed","params":{}"#, of_subscription(id)),
            3 => format!(r#""notifications/subscriptions/acknowledged","params":{}"#, of_subscription(id)),
            4 => r#""notifications/message","params":{"level":"info","data":"\ud800"}"#.to_owned(),
            _ => r#""notifications/unknown","params":[1]"#.to_owned(),
        };
        let call = self.calls.iter().find(|call| call.id == Some(id) && call.is_pending());
        let hears =
            call.filter(|call| kind.is_multiple_of(6) && call.hears_progress).map(|call| call.slot.clone());
        let before = hears.as_ref().map(|slot| slot.lock().unwrap().progress);
        let is_own_line = self.server.is_at_start();
        self.server.write(format!("{{\"jsonrpc\":\"2.0\",\"method\":{params}}}\n").as_bytes()).await;
        if let (Some(slot), Some(before)) = (hears, before)
            && is_own_line
            && !self.server.is_gone
        {
            assert_eq!(slot.lock().unwrap().progress, before + 1, "progress was not heard once");
        }
    }

    /// A request of the server.
    async fn ask(&mut self, kind: u8) {
        let id = ["1", "\"s\"", "null", "{}", "1e400"][usize::from(kind % 5)];
        let method =
            ["ping", "roots/list", "sampling/createMessage", "initialize"][usize::from(kind / 5 % 4)];
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n");
        self.server.write(line.as_bytes()).await;
    }
}

fn of_subscription(id: u64) -> String {
    format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":"{id}"}}}}"#)
}

fn pick<T>(list: &[T], which: u8) -> Option<&T> {
    // From the end: the newest are the ones that are under way.
    list.len().checked_sub(1 + usize::from(which) % list.len().max(1)).and_then(|at| list.get(at))
}

fn plan() -> Plan {
    let options = Options {
        allowed_inherited_env_keys: Vec::new(),
        env: Vec::new(),
        connect_timeout: Some(LONG),
        protocol: Protocol::Auto,
        max_message_bytes: LIMIT,
        shutdown: Shutdown { end_of_input: LEAVES_WITHIN, terminate: LEAVES_WITHIN },
        guardian: false,
        partial: false,
        listens: Listens { stderr: true, log: true, warning: true },
    };
    let definition = Definition {
        id: "script".into(),
        command: vec!["/none".into()],
        environment: Vec::new(),
        inherit_environment: Vec::new(),
        timeout: LONG,
        cwd: None,
        tools: ToolFilter::default(),
    };
    Plan::of(definition, Arc::new(options), None)
}
