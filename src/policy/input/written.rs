//! Trees for tests, written as JSON, with anything put into any place of them.

use serde_json::Value;

use super::Input;

impl From<&Value> for Input {
    fn from(json: &Value) -> Self {
        match json {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Self::String(text.clone()),
            Value::Array(elements) => Self::List(elements.iter().map(Self::from).collect()),
            Value::Object(entries) => {
                Self::Object(entries.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
        }
    }
}

impl Input {
    /// The same tree with `value` at a path such as `servers[1].command[0]`; a property that is not there is added.
    pub(crate) fn with(mut self, path: &str, value: Self) -> Self {
        let mut place = &mut self;
        for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
            place = match place {
                Self::List(elements) => &mut elements[step.parse::<usize>().unwrap_or(usize::MAX)],
                Self::Object(entries) => {
                    let index = entries.iter().position(|(key, _)| key == step).unwrap_or_else(|| {
                        entries.push((step.to_owned(), Self::Undefined));
                        entries.len() - 1
                    });
                    &mut entries[index].1
                }
                _ => panic!("{step} of {path} is inside neither an array nor an object"),
            };
        }
        *place = value;
        self
    }

    /// One of each kind there is but `undefined`; every text in them is `canary`.
    pub(crate) fn of_every_kind(canary: &str) -> Vec<Self> {
        vec![
            Self::Null,
            Self::Bool(true),
            Self::Number(1.5),
            Self::Number(f64::NAN),
            Self::Number(f64::INFINITY),
            Self::String(canary.to_owned()),
            Self::String(format!("{canary}\0")),
            Self::String(String::new()),
            Self::List(vec![Self::String(canary.to_owned())]),
            Self::List(vec![Self::Hole]),
            Self::Object(vec![("a".to_owned(), Self::String(canary.to_owned()))]),
            Self::Object(vec![("__proto__".to_owned(), Self::String(canary.to_owned()))]),
            Self::Hole,
            Self::Function,
            Self::Thrown,
            Self::TooDeep,
            Self::Other("a Map"),
            Self::Other("a Set"),
            Self::Other("a Date"),
            Self::Other("a Promise"),
            Self::Other("a symbol"),
            Self::Other("a bigint"),
        ]
    }
}
