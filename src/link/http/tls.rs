//! Whom to believe: the system's certificate authorities, and those of `NODE_EXTRA_CA_CERTS`, as Node does.
//!
//! All is read into memory once, on the pool: the verifiers of the platforms may go to disk or network in the middle of a handshake, and
//! that would be on the I/O thread.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;

use crate::error::{ErrorCode, McpError};

/// Some fifty times all authorities of a system.
const LONGEST: u64 = 16 * 1024 * 1024;

static SYSTEM: OnceCell<Arc<RootCertStore>> = OnceCell::const_new();

/// The provider is this configuration's alone: a host may have another one for itself. Beside it what was wrong with the file at
/// `extra`, which Node, too, takes for a warning. Without `needs_certificates` nothing is read, and nobody is believed.
pub(super) async fn config(
    needs_certificates: bool,
    extra: Option<&str>,
) -> Result<(ClientConfig, Option<String>), McpError> {
    let (roots, warning) =
        if needs_certificates { roots(extra).await? } else { (Arc::new(RootCertStore::empty()), None) };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| McpError::new(ErrorCode::Internal, format!("TLS could not be set up: {error}.")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((config, warning))
}

async fn roots(extra: Option<&str>) -> Result<(Arc<RootCertStore>, Option<String>), McpError> {
    let system = SYSTEM.get_or_try_init(|| on_pool(system)).await?.clone();
    let Some(path) = extra.map(str::to_owned) else { return Ok((system, None)) };
    on_pool(move || match with_extra(&system, &path) {
        Ok(roots) => (Arc::new(roots), None),
        Err(why) => {
            (system, Some(format!("The certificates of NODE_EXTRA_CA_CERTS ({path}) are not used: {why}.")))
        }
    })
    .await
}

async fn on_pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, McpError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        McpError::new(
            ErrorCode::Internal,
            "The certificate authorities could not be read; please report this.",
        )
    })
}

fn system() -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // A store that cannot be read leaves those that can; a server that nobody vouches for is refused by name later.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(roots)
}

fn with_extra(system: &RootCertStore, path: &str) -> Result<RootCertStore, String> {
    let mut roots = system.clone();
    let text = text_of(path).map_err(|error| error.to_string())?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| error.to_string())?;
    if roots.add_parsable_certificates(certificates).0 == 0 {
        return Err("no certificate is in it".to_owned());
    }
    Ok(roots)
}

/// A FIFO or a device would keep a thread of the pool for ever, and all memory.
fn text_of(path: &str) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("it is longer than {LONGEST} bytes")));
    }
    Ok(text)
}
