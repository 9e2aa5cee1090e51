//! A server behind a URL: streamable HTTP.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::error::McpError;

/// One server that is reached over streamable HTTP.
#[derive(Clone)]
pub struct Remote {
    /// `http:` or `https:`, without user info and fragment; judged by whoever makes it.
    pub url: String,
    pub headers: Arc<dyn Headers>,
}

/// Names and values, in the order they are sent.
pub type HeaderList = Arc<[(String, String)]>;

/// What [`Headers::headers`] gives, when it comes.
pub type HeadersComing<'a> = Pin<Box<dyn Future<Output = Result<Option<HeaderList>, McpError>> + Send + 'a>>;

/// What goes with every request besides the protocol's own headers. Whoever makes them tells the session's redactor of their values.
pub trait Headers: Send + Sync + 'static {
    /// `refused`: what this gave before, when the server answered 401 to it. A source that has nothing else to give answers `Ok(None)`;
    /// one that has already got newer ones than `refused` gives those without asking anybody: one refresh for all callers that wait.
    /// `request`: the id of the session's request that waits for them, where it is one.
    fn headers(&self, refused: Option<&HeaderList>, request: Option<u64>) -> HeadersComing<'_>;
}

/// Headers that never change.
pub struct Fixed(pub HeaderList);

impl Headers for Fixed {
    fn headers(&self, refused: Option<&HeaderList>, _request: Option<u64>) -> HeadersComing<'_> {
        let headers = if refused.is_none() { Some(self.0.clone()) } else { None };
        Box::pin(std::future::ready(Ok(headers)))
    }
}
