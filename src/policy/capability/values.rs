//! Values: what a token, a key or a URL with a password looks like, wherever it stands in the text.
//!
//! Each rule looks at a bounded piece of text from a place a literal marks, or walks a run of characters that no other
//! place walks again: the time is linear in the value. Placeholders (`${TOKEN}`, `<token>`, `xxxx`, `****`) are no secrets.

mod marked;

use self::marked::{account_key, aws_secret, bot_token, composed, signed_url};
use super::formats::{Format, base64, base64url, formats_from};
use memchr::memmem;

/// As far as a token is read to tell it from words and placeholders.
const LOOKED_AT: usize = 256;
/// Headers of JSON Web Tokens are some 40 to 1,500 characters long.
const LONGEST_JWT_HEADER: usize = 4096;

type Rule = fn(&str) -> Option<&'static str>;

const RULES: &[Rule] = &[
    private_key,
    prefixed,
    web_token,
    url_password,
    authorization,
    aws_secret,
    account_key,
    bot_token,
    composed,
    signed_url,
];

/// The known token format a value has, in words for a message: `Some("a GitHub token")`. Linear time.
#[must_use]
pub fn value_format(value: &str) -> Option<&'static str> {
    RULES.iter().find_map(|rule| rule(value))
}

/// What of a value is a secret by itself, without the rest: the password of a URL (as written and decoded), the credentials
/// behind `Bearer` or `Basic`, the password inside the latter.
pub(crate) fn secret_parts(value: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for password in url_passwords(value) {
        parts.push(password.to_owned());
        parts.push(percent_decoded(password));
    }
    for (scheme, credentials) in authorizations(value) {
        parts.push(credentials.to_owned());
        if scheme == Scheme::Basic {
            parts.extend(basic_password(credentials));
        }
    }
    parts
}

fn prefixed(value: &str) -> Option<&'static str> {
    let bytes = value.as_bytes();
    bytes.iter().enumerate().find_map(|(at, first)| {
        let formats = formats_from(*first);
        if formats.is_empty() || !starts_token(bytes, at) {
            return None;
        }
        formats.iter().copied().find_map(|format| {
            let rest = bytes[at..].strip_prefix(format.prefix.as_bytes())?;
            let body = run(rest, format.alphabet, LOOKED_AT.max(format.least));
            is_token(format, body).then_some(format.what)
        })
    })
}

fn is_token(format: &Format, body: &[u8]) -> bool {
    body.len() >= format.least
        // `sk-` also begins names made of words: `sk-learn-linear-regression`.
        && (format.prefix != "sk-" || !is_hyphenated_words(body))
        && !is_placeholder(body)
}

fn is_hyphenated_words(body: &[u8]) -> bool {
    body.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-')
        && body.split(|byte| *byte == b'-').all(|word| word.len() < 16)
}

/// Three base64url parts, the first of which is JSON with an `alg` (RFC 7515 §4.1.1). An unsigned token gives access to nothing.
fn web_token(value: &str) -> Option<&'static str> {
    let bytes = value.as_bytes();
    // `eyJ` is how `{"` begins in base64.
    memmem::find_iter(bytes, "eyJ").find_map(|start| {
        if start > 0 && base64url(bytes[start - 1]) {
            return None;
        }
        let header = run(&bytes[start..], base64url, LONGEST_JWT_HEADER);
        let payload = run(after_dot(bytes, start + header.len())?, base64url, usize::MAX);
        let signature =
            run(after_dot(bytes, start + header.len() + 1 + payload.len())?, base64url, LOOKED_AT);
        (signature.len() >= 16 && !is_placeholder(signature) && names_algorithm(header))
            .then_some("a JSON Web Token")
    })
}

fn after_dot(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..)?.strip_prefix(b".")
}

fn names_algorithm(header: &[u8]) -> bool {
    let Ok(header) = std::str::from_utf8(header) else { return false };
    serde_json::from_slice::<serde_json::Map<_, _>>(&base64_decoded(header))
        .is_ok_and(|header| header.contains_key("alg"))
}

/// RFC 7468 and its older kin: `-----BEGIN … PRIVATE KEY-----`.
fn private_key(value: &str) -> Option<&'static str> {
    const BEGIN: &str = "-----BEGIN ";
    const PUTTY: &str = "PuTTY-User-Key-File-";
    if value.contains(PUTTY) && value.contains("Private-Lines:") {
        return Some("a private key");
    }
    memmem::find_iter(value.as_bytes(), BEGIN).find_map(|start| {
        let label = run(
            &value.as_bytes()[start + BEGIN.len()..],
            |byte| byte.is_ascii_uppercase() || byte == b' ',
            64,
        );
        (label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK")).then_some("a private key")
    })
}

fn url_password(value: &str) -> Option<&'static str> {
    url_passwords(value).next().map(|_| "a URL with a password")
}

/// The passwords in `scheme://user:password@host` (RFC 3986 §3.2.1).
fn url_passwords(value: &str) -> impl Iterator<Item = &str> {
    const MARK: &str = "://";
    memmem::find_iter(value.as_bytes(), MARK).filter_map(|at| {
        if at == 0 || !value.as_bytes()[at - 1].is_ascii_alphanumeric() {
            return None;
        }
        let rest = value.get(at + MARK.len()..).unwrap_or_default();
        let ends = |letter: char| {
            matches!(letter, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '\\') || letter.is_whitespace()
        };
        let authority = rest.split(ends).next().unwrap_or_default();
        #[cfg(test)]
        work::count(authority.len() + 1);
        let (user_info, _) = authority.rsplit_once('@')?;
        let (_, password) = user_info.split_once(':')?;
        (!password.is_empty() && !is_placeholder(password.as_bytes())).then_some(password)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Bearer,
    Basic,
}

fn authorization(value: &str) -> Option<&'static str> {
    authorizations(value).next().map(|(scheme, _)| match scheme {
        Scheme::Bearer => "a bearer token",
        Scheme::Basic => "Basic credentials",
    })
}

/// The credentials behind `Bearer` and `Basic` (RFC 6750 §2.1, RFC 7617 §2). Where the scheme begins a header's value
/// any credentials count; in the middle of a sentence only what is clearly no word.
fn authorizations(value: &str) -> impl Iterator<Item = (Scheme, &str)> {
    memchr::memchr2_iter(b'b', b'B', value.as_bytes()).filter_map(|at| {
        let bytes = value.as_bytes();
        let (scheme, name) =
            [(Scheme::Bearer, "bearer"), (Scheme::Basic, "basic")].into_iter().find(|(_, name)| {
                bytes.get(at..at + name.len()).is_some_and(|here| here.eq_ignore_ascii_case(name.as_bytes()))
            })?;
        if !starts_token(bytes, at) {
            return None;
        }
        let rest = value.get(at + name.len()..).unwrap_or_default();
        let credentials = rest.strip_prefix(' ').or_else(|| rest.strip_prefix("%20"))?;
        let bytes = credentials.as_bytes();
        let is_credential = |byte| base64url(byte) || base64(byte) || matches!(byte, b'.' | b'~');
        let length = run(bytes, is_credential, usize::MAX).len();
        let padding = run(&bytes[length..], |byte| byte == b'=', 2).len();
        let (token, after) = credentials.split_at(length + padding);
        let before = value.get(..at).unwrap_or_default();
        let is_header = begins_header_value(before) && !after.starts_with(' ');
        let genuine = match scheme {
            Scheme::Bearer => is_bearer_token(token, is_header),
            Scheme::Basic => basic_password(token).is_some(),
        };
        (genuine && !is_placeholder(token.as_bytes())).then_some((scheme, token))
    })
}

fn begins_header_value(before: &str) -> bool {
    let before = before.trim_end_matches("%20").trim_end_matches([' ', '"', '\'', '\\']);
    before.is_empty()
        || before.ends_with([':', '=', '\n', '[', ','])
        || before.ends_with("%3A")
        || before.ends_with("%3D")
}

fn is_bearer_token(token: &str, is_header: bool) -> bool {
    const WORDS: [&str; 7] =
        ["bearer", "authentication", "authorization", "tokens", "format", "scheme", "header"];
    if is_header {
        token.len() >= 6 && !WORDS.iter().any(|word| token.eq_ignore_ascii_case(word))
    } else {
        token.len() >= 16 && token.bytes().any(|byte| byte.is_ascii_digit())
    }
}

fn basic_password(credentials: &str) -> Option<String> {
    let pair = String::from_utf8(base64_decoded(credentials)).ok()?;
    let (_, password) = pair.split_once(':')?;
    (!password.is_empty() && !pair.chars().any(char::is_control) && !is_placeholder(password.as_bytes()))
        .then(|| password.to_owned())
}

/// The characters at the start that belong to an alphabet, at most `most` of them.
fn run(bytes: &[u8], alphabet: fn(u8) -> bool, most: usize) -> &[u8] {
    let run = &bytes[..bytes.iter().take(most).take_while(|byte| alphabet(**byte)).count()];
    #[cfg(test)]
    work::count(run.len() + 1);
    run
}

/// Nothing that could belong to a longer word stands before: `%3D` is an escape, and the hyphens of `--` begin an option.
fn starts_token(bytes: &[u8], at: usize) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match bytes[..at] {
        [] | [b'-'] => true,
        [.., before, b'-'] => !is_word(before),
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [.., before] => !is_word(before),
    }
}

/// Text that stands where a secret will be put: `${TOKEN}`, `$TOKEN`, `{{token}}`, `<token>`, `%TOKEN%`, `[redacted]`,
/// `****`, `xxxx`, `your_token_here`.
fn is_placeholder(text: &[u8]) -> bool {
    const MARKS: [&[u8]; 5] = [b"xxxx", b"your", b"placeholder", b"redacted", b"changeme"];
    #[cfg(test)]
    work::count(text.len().min(LOOKED_AT));
    let text = &text[..text.len().min(LOOKED_AT)];
    let enclosed = |open: &[u8], close: &[u8]| {
        text.starts_with(open) && text.ends_with(close) && text.len() > open.len()
    };
    let filler = |byte: &u8| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'-' | b'_' | b'0' | b'#');
    let names_variable = |rest: &[u8]| {
        !rest.is_empty()
            && rest.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
    };
    text.iter().all(filler)
        || enclosed(b"${", b"}")
        || enclosed(b"$(", b")")
        || enclosed(b"{", b"}")
        || enclosed(b"<", b">")
        || enclosed(b"[", b"]")
        || enclosed(b"%", b"%")
        || enclosed(b"%(", b")s")
        || text.strip_prefix(b"$").is_some_and(names_variable)
        || MARKS.iter().any(|mark| text.windows(mark.len()).any(|here| here.eq_ignore_ascii_case(mark)))
}

/// Standard and URL-safe base64 alike, padding or none; stops at what is neither.
fn base64_decoded(text: &str) -> Vec<u8> {
    #[cfg(test)]
    work::count(text.len());
    let mut decoded = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count & 0xff) as u8);
        }
    }
    decoded
}

/// `%41` as `A`; what is no escape, or would not be UTF-8, stays.
pub(crate) fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let escaped = || u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok();
        let byte = if bytes[at] == b'%' { escaped() } else { None };
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests;

/// Bytes looked at from a place that a mark has found: all that could look at a byte more than once for each rule.
#[cfg(test)]
mod work {
    use std::cell::Cell;

    thread_local! {
        static DONE: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count(bytes: usize) {
        DONE.set(DONE.get() + bytes);
    }

    pub(super) fn of(judge: impl FnOnce()) -> usize {
        DONE.set(0);
        judge();
        DONE.get()
    }
}
