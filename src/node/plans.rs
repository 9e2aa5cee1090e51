//! Definitions that were judged, and what is started of them.

use std::sync::Arc;

use napi_derive::napi;
use serde_json::Value;

use super::connection::Connection;
use super::dispatcher::handle::DispatcherHandle;
use super::{io_thread, values};
use crate::error::McpError;
use crate::policy::definition::{self, Definition};
use crate::policy::options::{self, Options};
use crate::policy::platform::Platform;
use crate::session::Plan;

/// Judged definitions, ready to be started.
#[napi]
pub struct Plans {
    judged: Result<(Vec<Definition>, Arc<Options>), McpError>,
}

/// Judges definitions and options before anything starts, which takes no dispatcher. All three are descriptions; `shape` is `one`,
/// `group` or `normalize`.
#[napi(catch_unwind)]
pub fn plan(definitions: String, options: String, host_env: String, shape: String) -> Plans {
    Plans { judged: judge(&definitions, &options, &host_env, &shape) }
}

#[napi]
impl Plans {
    /// The first fault, as a JSON description of an error.
    #[napi(getter, catch_unwind)]
    pub fn error(&self) -> Option<String> {
        self.judged.as_ref().err().map(|error| error.to_json().to_string())
    }

    /// The definitions with every default filled in: a JSON array.
    #[napi(getter, catch_unwind)]
    pub fn normalized(&self) -> String {
        let definitions = self
            .judged
            .as_ref()
            .map(|(definitions, _)| definitions.iter().map(Definition::to_json).collect());
        Value::Array(definitions.unwrap_or_default()).to_string()
    }

    /// Whether a group resolves although some of its servers failed.
    #[napi(getter, catch_unwind)]
    pub fn partial(&self) -> bool {
        self.judged.as_ref().is_ok_and(|(_, options)| options.partial)
    }

    /// Starts the server at `index`. The result of the token is its welcome; its events carry the token too.
    #[napi(catch_unwind)]
    pub fn connect(&self, handle: &DispatcherHandle, index: u32, token: i64) -> napi::Result<Connection> {
        let no_plan = || napi::Error::from_reason("there is no such definition in the plan");
        let (definitions, options) = self.judged.as_ref().map_err(|_| no_plan())?;
        let definition = definitions.get(index as usize).ok_or_else(no_plan)?.clone();
        let directory = std::env::current_dir().ok();
        let runtime = io_thread::handle().map_err(|error| napi::Error::from_reason(error.message))?;
        let plan = Plan::of(definition, options.clone(), directory);
        Ok(Connection::start(plan, token, handle.dispatcher.clone(), &runtime))
    }
}

fn judge(
    definitions: &str,
    options: &str,
    host_env: &str,
    shape: &str,
) -> Result<(Vec<Definition>, Arc<Options>), McpError> {
    let options = options::judge(&values::read(options), || values::read(host_env), shape == "group")?;
    let definitions = values::read(definitions);
    let definitions = match shape {
        "one" => vec![definition::judge_one(&definitions, &options, Platform::HOST)?],
        "group" => definition::judge_group(&definitions, &options, Platform::HOST)?,
        _ => definition::judge_all(&definitions, &options, Platform::HOST)?,
    };
    Ok((definitions, Arc::new(options)))
}
