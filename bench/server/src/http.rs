//! MCP over streamable HTTP: JSON answers on connections that stay open, no session, no stream.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::tools::{Request, Tools, when_due};

pub fn serve(tools: Arc<Tools>) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?.port());
    // Whoever started the server ends it by closing its stdin.
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let (stream, tools) = (stream?, tools.clone());
        // A client that hangs up ends its own connection only.
        thread::spawn(move || drop(connection(&stream, &tools)));
    }
    Ok(())
}

fn connection(stream: &TcpStream, tools: &Tools) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(64 * 1024, stream);
    let mut body = Vec::new();
    while let Some((method, length)) = read_head(&mut input)? {
        body.resize(length, 0);
        input.read_exact(&mut body)?;
        let request = serde_json::from_slice::<Request>(&body).ok();
        let id = request.as_ref().and_then(|request| request.id);
        match request.as_ref().zip(id) {
            // Neither streams nor sessions are offered: GET and DELETE are refused, as the specification has it.
            _ if method != "POST" => respond(stream, "405 Method Not Allowed", &[])?,
            None => respond(stream, "202 Accepted", &[])?,
            Some((request, id)) => {
                let (sender, due) = mpsc::channel();
                when_due(tools.answer(request), move |body| drop(sender.send(body)));
                let answer = due.recv().map_err(io::Error::other)?;
                let head = format!(r#"{{"jsonrpc":"2.0","id":{},"#, id.get());
                respond(stream, "200 OK", &[&head, &answer, "}"])?;
            }
        }
    }
    Ok(())
}

/// The method and the body's length of the next request; `None` when there is none any more.
fn read_head(input: &mut impl BufRead) -> io::Result<Option<(String, usize)>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        input.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            return Ok(Some((method, length)));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

fn respond(mut stream: &TcpStream, status: &str, body: &[&str]) -> io::Result<()> {
    let length: usize = body.iter().map(|part| part.len()).sum();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    if length < 64 * 1024 {
        return stream.write_all(format!("{head}{}", body.concat()).as_bytes());
    }
    stream.write_all(head.as_bytes())?;
    body.iter().try_for_each(|part| stream.write_all(part.as_bytes()))
}
