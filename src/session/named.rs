//! The plan of a server that a project names.

use std::sync::Arc;

use super::plan::{Plan, Server};
use crate::link::http::{Fixed, Headers, Remote};
use crate::policy::definition::ToolFilter;
use crate::policy::options::{Listens, Options};
use crate::policy::redact::Redactor;
use crate::project::options::Options as ProjectOptions;
use crate::project::server::{Headers as Source, Reach, Server as Named};

impl Plan {
    /// `function`: the headers of a server whose headers a function gives, and the redactor that is told of them.
    #[must_use]
    pub fn named(named: Named, project: &ProjectOptions, function: (Arc<dyn Headers>, Redactor)) -> Self {
        let options = Arc::new(Options {
            protocol: named.protocol,
            listens: Listens { warning: project.hears_warnings, ..Listens::default() },
            ..Options::with(project.allowed_inherited_env_keys.clone(), project.env.clone())
        });
        let (timeout, answers_input) = (named.timeout, project.answers_input);
        match named.reach {
            Reach::Command(definition) => Self {
                lists_tools: false,
                timeout,
                answers_input,
                redactor: Redactor::new(&named.secrets),
                ..Self::of(definition, options, None)
            },
            Reach::Url { url, headers, .. } => {
                let (headers, redactor) = match headers {
                    Source::Fixed(list) => {
                        (Arc::new(Fixed(list.into())) as Arc<dyn Headers>, Redactor::new(&named.secrets))
                    }
                    Source::Function => {
                        function.1.keep(&named.secrets);
                        function
                    }
                };
                Self {
                    id: named.name,
                    server: Server::Http(Remote { url, headers }),
                    tools: ToolFilter::default(),
                    lists_tools: false,
                    timeout,
                    answers_input,
                    redactor,
                    missing: Vec::new(),
                    options,
                }
            }
        }
    }
}
