//! How a secret reads when something else has written it: in JSON, in HTML, in a URL, in base64.

use std::fmt::Write;

/// Read byte by byte, as Node and others read headings (RFC 9110 §5.5): `Ã¼` for `ü`.
pub(super) fn as_latin_1(text: &str) -> Option<String> {
    (!text.is_ascii()).then(|| text.bytes().map(char::from).collect())
}

/// Inside a JSON string: as `JSON.stringify` writes it or all ASCII (Python), each also with `\/` (PHP); without what means something in
/// HTML (Go); in ASCII, with upper case digits and without quotes and the `+` of base64 too (.NET).
pub(super) fn in_json(text: &str) -> Vec<String> {
    let Ok(quoted) = serde_json::to_string(text) else { return Vec::new() };
    let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
    let ascii = by_number(&escaped, |letter| !letter.is_ascii(), false);
    let go = by_number(&escaped, |letter| "<>&".contains(letter), false);
    let unescaped = escaped.replace("\\\"", "\"");
    let dot_net = by_number(&unescaped, |letter| !letter.is_ascii() || "\"&'+<>`".contains(letter), true);
    let with_slashes = |form: &str| form.replace('/', "\\/");
    vec![with_slashes(&escaped), with_slashes(&ascii), go, dot_net, escaped, ascii]
}

/// With escapes by number in place of some letters.
fn by_number(escaped: &str, is_replaced: impl Fn(char) -> bool, upper_case: bool) -> String {
    let mut written = String::with_capacity(escaped.len());
    for letter in escaped.chars() {
        if !is_replaced(letter) {
            written.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ =
                if upper_case { write!(written, "\\u{unit:04X}") } else { write!(written, "\\u{unit:04x}") };
        }
    }
    written
}

/// In a page that tells of an error: as Express, Python, Ruby and Django, and Go write it, and as OWASP advises.
pub(super) fn in_html(text: &str) -> Vec<String> {
    const EXPRESS: [&str; 2] = ["&quot;", "&#39;"];
    const PYTHON: [&str; 2] = ["&quot;", "&#x27;"];
    const GO: [&str; 2] = ["&#34;", "&#39;"];
    let marks = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = |[double, single]: [&str; 2]| marks.replace('"', double).replace('\'', single);
    let python = quoted(PYTHON);
    let owasp = python.replace('/', "&#x2F;");
    vec![quoted(EXPRESS), quoted(GO).replace('+', "&#43;"), quoted(GO), python, owasp, marks]
}

/// In a URL: escaped as `encodeURIComponent` does, as RFC 3986 and forms do (strict, space as `+`), and as `encodeURI` does,
/// which leaves the reserved characters; each with upper and lower case digits.
pub(super) fn percent_escaped(text: &str) -> Vec<String> {
    const STRICT: &[u8] = b"-_.~";
    const COMPONENT: &[u8] = b"-_.~!*'()";
    const WHOLE_URI: &[u8] = b"-_.~!*'();/?:@&=+$,#";
    let mut forms = Vec::new();
    for kept in [STRICT, COMPONENT, WHOLE_URI] {
        forms.push(escape(text, kept, b"0123456789ABCDEF"));
        forms.push(escape(text, kept, b"0123456789abcdef"));
    }
    if text.contains(' ') {
        forms.extend([forms[0].replace("%20", "+"), forms[1].replace("%20", "+")]);
    }
    forms
}

fn escape(text: &str, kept: &[u8], digits: &[u8; 16]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let digit = |four: u8| char::from(digits[usize::from(four)]);
            escaped.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    escaped
}

/// In base64, standard and URL-safe: by itself with its padding, and the characters that are the same wherever the text
/// stands in a longer one (`user:SECRET` in a Basic header). A character that a neighbour has a share in is left out: at most
/// one at each end, which tells four bits of the secret.
pub(super) fn in_base64(text: &str) -> Vec<String> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut forms = Vec::new();
    for alphabet in [STANDARD, URL_SAFE] {
        let alone = encode(text.as_bytes(), alphabet);
        forms.push(format!("{alone}{}", "=".repeat((4 - alone.len() % 4) % 4)));
        for before in 0..3 {
            let mut shifted = vec![0; before];
            shifted.extend_from_slice(text.as_bytes());
            let encoded = encode(&shifted, alphabet);
            // `before` bytes reach into the first 0, 2 or 3 characters; a last character that is not full reaches beyond the end.
            let from = (before * 8).div_ceil(6);
            let to = shifted.len() * 8 / 6;
            forms.push(encoded.get(from..to).unwrap_or_default().to_owned());
        }
        forms.push(alone);
    }
    forms
}

/// Without padding.
fn encode(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let three = [chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..=chunk.len() {
            let six = bits >> (18 - 6 * place) & 0x3f;
            encoded.push(char::from(alphabet[six as usize]));
        }
    }
    encoded
}
