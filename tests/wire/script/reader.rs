//! A second reader of what a server wrote, to judge the first by: it shares no code with the client, and where it is laxer than JSON it
//! only finds more.

/// One message as far as correlation goes, each member as its text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Written<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) params: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
}

impl Written<'_> {
    /// The number that the id is, or is the text of.
    pub(crate) fn number(&self) -> Option<u64> {
        let id = self.id?.trim_matches('"');
        let whole = id.find('.').filter(|dot| id[dot + 1..].chars().all(|digit| digit == '0'));
        id[..whole.unwrap_or(id.len())].parse().ok()
    }

    pub(crate) fn is_without_id(&self) -> bool {
        self.id.is_none_or(|id| id == "null")
    }

    pub(crate) fn is_request(&self) -> bool {
        self.method.is_some_and(|method| method != "null") && !self.is_without_id()
    }
}

/// The messages of one line: one, or those of a batch.
pub(crate) fn messages(line: &str) -> Vec<Written<'_>> {
    let line = line.trim_matches(is_space);
    match line.as_bytes().first() {
        Some(b'{') => written(line).into_iter().collect(),
        Some(b'[') => parts(line).into_iter().filter_map(|(_, element)| written(element)).collect(),
        _ => Vec::new(),
    }
}

fn written(text: &str) -> Option<Written<'_>> {
    if !text.starts_with('{') {
        return None;
    }
    let mut message = Written::default();
    for (key, value) in parts(text) {
        let value = Some(value);
        match serde_json::from_str::<String>(key?).ok().as_deref() {
            Some("id") => message.id = value,
            Some("method") => message.method = value,
            Some("params") => message.params = value,
            Some("result") => message.result = value,
            Some("error") => message.error = value,
            _ => {}
        }
    }
    Some(message)
}

/// The members of an object, or the elements of an array, at the top of a text.
pub(crate) fn parts(text: &str) -> Vec<(Option<&str>, &str)> {
    let mut parts = Vec::new();
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let (mut start, mut colon) = (1, None);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b':' if depth == 1 => colon = colon.or(Some(at)),
            b',' | b'}' | b']' if depth == 1 => {
                let key = colon.map(|colon| text[start..colon].trim_matches(is_space));
                let value = text[colon.map_or(start, |colon| colon + 1)..at].trim_matches(is_space);
                if !value.is_empty() {
                    parts.push((key, value));
                }
                (start, colon) = (at + 1, None);
                if byte != b',' {
                    break;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    parts
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '\u{feff}')
}
