//! Values: what a token, a key or a URL with a password looks like, wherever it stands in the text.
//!
//! Each rule looks at a bounded piece of text from a place a literal marks, or walks a run of characters that no other
//! place walks again: the time is linear in the value. Placeholders (`${TOKEN}`, `<token>`, `xxxx`, `****`) are no secrets.

use super::formats::{FORMATS, Format, base64, base64url};
use aho_corasick::AhoCorasick;
use memchr::memmem;
use std::sync::LazyLock;

/// As far as a token is read to tell it from words and placeholders.
const LOOKED_AT: usize = 256;
/// Headers of JSON Web Tokens are some 40 to 1,500 characters long.
const LONGEST_JWT_HEADER: usize = 4096;

type Rule = fn(&str) -> Option<&'static str>;

const RULES: &[Rule] =
    &[private_key, prefixed, web_token, url_password, authorization, aws_secret, account_key, bot_token];

/// The known token format a value has, in words for a message: `Some("a GitHub token")`. Linear time.
#[must_use]
pub fn value_format(value: &str) -> Option<&'static str> {
    RULES.iter().find_map(|rule| rule(value))
}

/// What of a value is a secret by itself, without the rest: the password of a URL (as written and decoded), the credentials
/// behind `Bearer` or `Basic`, the password inside the latter.
pub(in crate::policy) fn secret_parts(value: &str) -> Vec<String> {
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
    // Without a usable table nothing would be a token; building it from these constants cannot fail, and a test says so.
    static PREFIXES: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::new(FORMATS.iter().map(|format| format.prefix)).ok());
    let bytes = value.as_bytes();
    PREFIXES.as_ref()?.find_overlapping_iter(value).find_map(|found| {
        let format =
            FORMATS.get(found.pattern().as_usize()).filter(|_| starts_token(bytes, found.start()))?;
        let body = run(&bytes[found.end()..], format.alphabet, LOOKED_AT.max(format.least));
        is_token(format, body).then_some(format.what)
    })
}

fn is_token(format: &Format, body: &[u8]) -> bool {
    body.len() >= format.least
        && !is_placeholder(body)
        // `sk-` also begins names made of words: `sk-learn-linear-regression`.
        && (format.prefix != "sk-" || !is_hyphenated_words(body))
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
        let rest = &value[at + MARK.len()..];
        let ends = |letter: char| {
            matches!(letter, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '\\') || letter.is_whitespace()
        };
        let authority = rest.split(ends).next().unwrap_or_default();
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
        let rest = &value[at + name.len()..];
        let credentials = rest.strip_prefix(' ').or_else(|| rest.strip_prefix("%20"))?;
        let token = run(
            credentials.as_bytes(),
            |byte| base64url(byte) || base64(byte) || matches!(byte, b'.' | b'~'),
            usize::MAX,
        );
        let token = &credentials
            [..token.len() + run(&credentials.as_bytes()[token.len()..], |byte| byte == b'=', 2).len()];
        let is_header = begins_header_value(&value[..at]) && !credentials[token.len()..].starts_with(' ');
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

/// An access key id names a key and is no secret; the 40 characters that belong to it have no mark of their own, so they
/// count where the id or their name stands in the same value.
fn aws_secret(value: &str) -> Option<&'static str> {
    let bytes = value.as_bytes();
    let has_id = || {
        ["AKIA", "ASIA"].into_iter().any(|mark| {
            memmem::find_iter(bytes, mark).any(|at| {
                let id = run(&bytes[at..], |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit(), 21);
                id.len() == 20 && starts_token(bytes, at)
            })
        })
    };
    let has_name = || {
        let lower = value.to_ascii_lowercase();
        ["secret_access_key", "secretaccesskey"]
            .into_iter()
            .any(|name| memmem::find(lower.as_bytes(), name.as_bytes()).is_some())
    };
    let is_secret = |run: &[u8]| {
        run.len() == 40
            && run.iter().any(u8::is_ascii_lowercase)
            && run.iter().any(u8::is_ascii_uppercase)
            && run.iter().any(u8::is_ascii_digit)
    };
    let mut runs = bytes.split(|byte| !base64(*byte));
    (runs.any(is_secret) && (has_id() || has_name())).then_some("an AWS secret key")
}

/// The keys in connection strings of Azure storage, Service Bus and Event Hubs, and the password in those of ADO.NET.
fn account_key(value: &str) -> Option<&'static str> {
    let mut pairs = 0;
    let mut what = None;
    for (name, text) in value.split(';').filter_map(|pair| pair.split_once('=')) {
        pairs += 1;
        let name = name.trim().to_ascii_lowercase();
        let text = text.trim();
        let is_key = matches!(name.as_str(), "accountkey" | "sharedaccesskey")
            && run(text.as_bytes(), base64, 40).len() == 40;
        let is_password = matches!(name.as_str(), "password" | "pwd") && !text.is_empty();
        if (is_key || is_password) && !is_placeholder(text.as_bytes()) {
            what = Some("a connection string with a password or key");
        }
    }
    what.filter(|_| pairs >= 2)
}

/// Telegram: the bot's number, a colon and 35 characters that begin with `A`.
fn bot_token(value: &str) -> Option<&'static str> {
    let bytes = value.as_bytes();
    memmem::find_iter(bytes, ":A").find_map(|colon| {
        let digits = bytes[..colon].iter().rev().take(17).take_while(|byte| byte.is_ascii_digit()).count();
        let secret = run(&bytes[colon + 1..], base64url, 36);
        ((8..=16).contains(&digits) && secret.len() == 35 && !is_placeholder(secret))
            .then_some("a Telegram bot token")
    })
}

/// The characters at the start that belong to an alphabet, at most `most` of them.
fn run(bytes: &[u8], alphabet: fn(u8) -> bool, most: usize) -> &[u8] {
    &bytes[..bytes.iter().take(most).take_while(|byte| alphabet(**byte)).count()]
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
fn percent_decoded(text: &str) -> String {
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
