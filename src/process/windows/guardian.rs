//! There is no guardian here: when the host ends, in whatever way, the system closes its handles, and with them ends the jobs.

use std::convert::Infallible;
use std::future::Ready;

#[derive(Debug)]
pub(in crate::process) struct Guardian(Infallible);

#[derive(Debug)]
pub(in crate::process) struct Listing(Infallible);

impl Guardian {
    pub(in crate::process) fn warning(&self) -> Ready<Option<String>> {
        match self.0 {}
    }
}

impl Listing {
    pub(in crate::process) fn guardian(&self) -> &'static Guardian {
        match self.0 {}
    }
}
