//! MCP over stdin and stdout.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tools::{Reply, Request, Tools, when_due};

/// Small answers are gathered while more requests have been read already, up to so many bytes.
const GATHER: usize = 64 * 1024;

pub fn serve(tools: &Tools) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1024 * 1024, io::stdin().lock());
    // The file itself: the standard library's stdout would look for newlines in everything.
    let output = Arc::new(Mutex::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)));
    let mut line = Vec::new();
    let mut gathered = Vec::with_capacity(2 * GATHER);
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let request = serde_json::from_slice::<Request>(&line).ok();
        // What is no request, and what wants no answer.
        let id = request.as_ref().and_then(|request| request.id);
        if let Some((request, id)) = request.as_ref().zip(id) {
            match tools.answer(request) {
                Reply::Now(body) if body.len() < GATHER => write_answer(&mut gathered, id.get(), &body)?,
                Reply::Now(body) => {
                    flush(&output, &mut gathered)?;
                    write_answer(&mut *lock(&output), id.get(), &body)?;
                }
                later @ Reply::After(..) => {
                    let (id, output) = (id.get().to_owned(), output.clone());
                    // A client that has gone needs no answer.
                    when_due(later, move |body| drop(write_answer(&mut *lock(&output), &id, &body)));
                }
            }
        }
        if gathered.len() >= GATHER || input.buffer().is_empty() {
            flush(&output, &mut gathered)?;
        }
    }
}

fn flush(output: &Mutex<File>, gathered: &mut Vec<u8>) -> io::Result<()> {
    if !gathered.is_empty() {
        lock(output).write_all(gathered)?;
        gathered.clear();
    }
    Ok(())
}

fn lock(output: &Mutex<File>) -> MutexGuard<'_, File> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_answer(to: &mut impl Write, id: &str, body: &str) -> io::Result<()> {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
    if body.len() < GATHER {
        // In one write: half a line would wake the reader for nothing.
        return to.write_all(format!("{head}{body}}}\n").as_bytes());
    }
    to.write_all(head.as_bytes())?;
    to.write_all(body.as_bytes())?;
    to.write_all(b"}\n")
}
