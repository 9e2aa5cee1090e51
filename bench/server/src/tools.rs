//! What the server answers. Large results are made once and kept: the client is measured, not their making.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

/// One character in 21 is an escape in JSON; in source code one in 25 (Rust) to 40 (JavaScript) is, counted in this repository and a peer.
const SOURCE_CODE: &str = "\tif (name === \"fox\") return jumps(over, theLazyDog)\n\t\t// A comment has little in it that JSON has to escape, nor has most of the text that is not code.\n";

/// Tools on one page of a listing.
const PAGE: usize = 32;

/// One message of a client.
#[derive(Deserialize)]
pub struct Request<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    pub method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// What any tool may be given.
#[derive(Deserialize, Default)]
struct Arguments {
    bytes: Option<usize>,
    count: Option<usize>,
    ms: Option<u64>,
}

/// What comes after the id: `"result":…` or `"error":…`.
pub enum Reply {
    Now(Arc<str>),
    /// After a while, which must hold up nobody else.
    After(Duration, Arc<str>),
}

pub struct Tools {
    /// Each page of `tools/list`.
    pages: Vec<Arc<str>>,
    made: Mutex<HashMap<(String, usize), Arc<str>>>,
}

impl Tools {
    /// The tools of the bench, and `count` more whose schemas are `bytes` long.
    pub fn new(count: usize, bytes: usize) -> Self {
        let own = ["echo", "ascii", "cjk", "escapes", "rows", "sink", "sleep"].map(|name| tool(name, 100));
        let more = (0..count).map(|index| tool(&format!("tool_{index}"), bytes));
        let all: Vec<String> = own.into_iter().chain(more).collect();
        let last = all.len().div_ceil(PAGE) - 1;
        let pages = all.chunks(PAGE).enumerate().map(|(index, page)| {
            let cursor =
                if index < last { format!(r#","nextCursor":"{}""#, index + 1) } else { String::new() };
            format!(r#""result":{{"tools":[{}]{cursor}}}"#, page.join(",")).into()
        });
        Self { pages: pages.collect(), made: Mutex::default() }
    }

    /// The answer to one request.
    pub fn answer(&self, request: &Request<'_>) -> Reply {
        let params = request.params.map_or("{}", RawValue::get);
        match request.method {
            "initialize" => Reply::Now(initialize(params)),
            "ping" => Reply::Now(r#""result":{}"#.into()),
            "tools/list" => Reply::Now(self.page(params)),
            "tools/call" => match serde_json::from_str::<Call>(params) {
                Ok(call) => self.call(&call),
                Err(_) => Reply::Now(error(-32602, "a call wants a name")),
            },
            _ => Reply::Now(error(-32601, "no such method")),
        }
    }

    fn page(&self, params: &str) -> Arc<str> {
        #[derive(Deserialize)]
        struct Cursor<'a> {
            cursor: Option<&'a str>,
        }
        let cursor = serde_json::from_str::<Cursor>(params).ok().and_then(|params| params.cursor);
        let index = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        self.pages.get(index).cloned().unwrap_or_else(|| error(-32602, "no such page"))
    }

    fn call(&self, call: &Call<'_>) -> Reply {
        let text = call.arguments.map_or("{}", RawValue::get);
        match call.name {
            "echo" => return Reply::Now(echo(text)),
            "sink" => return Reply::Now(text_result(&text.len().to_string())),
            _ => {}
        }
        let given: Arguments = serde_json::from_str(text).unwrap_or_default();
        let size = given.bytes.or(given.count).unwrap_or(0);
        let make: fn(usize) -> Arc<str> = match call.name {
            "ascii" => |bytes| text_result(&filled("The quick brown fox jumps over the lazy dog. ", bytes)),
            "cjk" => |bytes| text_result(&filled("The 速い brown 狐 jumps over 怠惰な犬. 完了 ", bytes)),
            "escapes" => |bytes| text_result(&filled(SOURCE_CODE, bytes)),
            "rows" => rows,
            "sleep" => {
                let ms = given.ms.unwrap_or(0);
                return Reply::After(Duration::from_millis(ms), text_result("slept"));
            }
            _ => return Reply::Now(error(-32602, "no such tool")),
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        Reply::Now(made.entry((call.name.to_owned(), size)).or_insert_with(|| make(size)).clone())
    }
}

/// Runs `send` when the reply is due: at once, else on a thread of its own.
pub fn when_due(reply: Reply, send: impl FnOnce(Arc<str>) + Send + 'static) {
    match reply {
        Reply::Now(body) => send(body),
        Reply::After(wait, body) => drop(thread::spawn(move || {
            thread::sleep(wait);
            send(body);
        })),
    }
}

/// The version that was offered is the one that is spoken.
fn initialize(params: &str) -> Arc<str> {
    #[derive(Deserialize)]
    struct Offer<'a> {
        #[serde(rename = "protocolVersion")]
        version: &'a str,
    }
    let version = serde_json::from_str::<Offer>(params).map_or("2025-11-25", |offer| offer.version);
    format!(
        r#""result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench-server","version":"1"}}}}"#
    )
    .into()
}

fn echo(arguments: &str) -> Arc<str> {
    #[derive(Deserialize)]
    struct Given<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
    }
    let text = serde_json::from_str::<Given>(arguments).map_or("\"\"", |given| given.text.get());
    format!(r#""result":{{"content":[{{"type":"text","text":{text}}}]}}"#).into()
}

/// A tool whose schema is about so many bytes long.
fn tool(name: &str, bytes: usize) -> String {
    let mut properties = String::new();
    for index in 0.. {
        if properties.len() >= bytes {
            break;
        }
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(
            properties,
            r#"{comma}"p{index}":{{"type":"string","description":"The parameter of this number."}}"#
        );
    }
    format!(
        r#"{{"name":"{name}","description":"A tool of the bench.","inputSchema":{{"type":"object","properties":{{{properties}}}}}}}"#
    )
}

fn text_result(text: &str) -> Arc<str> {
    let text = serde_json::Value::from(text);
    format!(r#""result":{{"content":[{{"type":"text","text":{text}}}]}}"#).into()
}

/// The phrase again and again, `bytes` long or a few bytes shorter.
fn filled(phrase: &str, bytes: usize) -> String {
    let mut text = phrase.repeat(bytes / phrase.len());
    text.extend(phrase.chars().take_while({
        let mut left = bytes - text.len();
        move |character| {
            let fits = character.len_utf8() <= left;
            left -= if fits { character.len_utf8() } else { left };
            fits
        }
    }));
    text
}

/// About 77 bytes a row.
fn rows(count: usize) -> Arc<str> {
    let rows: Vec<String> = (0..count)
        .map(|index| {
            let (value, active) = (index * 7 % 1000, index % 3 == 0);
            format!(
                r#"{{"id":{index},"name":"row number {index}","value":{value}.5,"active":{active},"tag":"t{value}"}}"#
            )
        })
        .collect();
    format!(r#""result":{{"content":[],"structuredContent":{{"rows":[{}]}}}}"#, rows.join(",")).into()
}

fn error(code: i32, message: &str) -> Arc<str> {
    format!(r#""error":{{"code":{code},"message":"{message}"}}"#).into()
}
