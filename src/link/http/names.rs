//! Names to addresses, on threads of their own: `getaddrinfo` blocks for as long as a resolver that is not there takes, and the pool that
//! starts servers has four threads.

use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::{fmt, io, thread};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::{Semaphore, oneshot};

use crate::project::url::is_localhost;

/// Lookups at one time, in the whole process. One that hangs keeps its place until the system gives it up.
static LOOKUPS: Semaphore = Semaphore::const_new(8);

pub(super) struct Names;

/// A name that has no address.
#[derive(Debug)]
pub(super) struct Unresolved(pub io::Error);

impl fmt::Display for Unresolved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Error for Unresolved {}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = addresses(name.as_str().to_owned()).await.map_err(Unresolved)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

async fn addresses(name: String) -> io::Result<Vec<SocketAddr>> {
    // Asked of nobody (RFC 6761, 6.3): what is sent there in clear must not leave this machine, whatever a resolver says.
    if is_localhost(&name) {
        return Ok(vec![(Ipv6Addr::LOCALHOST, 0).into(), (Ipv4Addr::LOCALHOST, 0).into()]);
    }
    let place = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let (sender, found) = oneshot::channel();
    thread::Builder::new().name("workflow-mcp-names".into()).spawn(move || {
        let _place = place;
        // Whoever asked may have given up.
        let _ = sender.send((name.as_str(), 0).to_socket_addrs().map(Iterator::collect));
    })?;
    found.await.map_err(io::Error::other)?
}
