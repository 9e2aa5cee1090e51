//! Pure rules: nothing here reads the process, starts anything or knows a server.
//!
//! - [`input`] — a value as JavaScript gave it, before anybody judged it
//! - [`found`] — a value where it was found, what may stand there, and the refusal that says both
//! - [`platform`] — what a name, a path and a variable are on each system
//! - [`definition`] — what may be asked: definitions, and what they mean
//! - [`options`] — what may be asked: the options of a connect
//! - [`environment`] — what a child gets
//! - [`capability`] — what is secret
//! - [`redact`] — what may be shown
//! - [`nearest`] — which known name a wrong one resembles

pub mod capability;
pub mod definition;
pub mod environment;
pub(crate) mod found;
pub mod input;
pub mod nearest;
pub mod options;
pub mod platform;
pub mod redact;
