//! What is looked for of one value: itself in pieces, its lines, the parts that are secrets by themselves; of an
//! ordinary value only where it is worth hiding.

use crate::policy::capability::{name_is_capability, secret_parts};

/// Ordinary values, in characters (design, redaction).
const SHORTEST_ORDINARY: usize = 12;
/// Lines of a longer value, in characters: shorter ones are brackets, `then` and blank space.
const SHORTEST_LINE: usize = 8;
/// Longer values are looked for in pieces of this many bytes and more, so that a reader never holds back much (`longest`).
pub(super) const PIECE: usize = 1024;

pub(super) fn capability_texts(value: &str) -> Vec<String> {
    let mut texts = pieces(value);
    texts.extend(secret_parts(value).iter().flat_map(|part| pieces(part)));
    texts.extend(credentials(value).into_iter().chain(assigned(value)).flat_map(pieces));
    texts.extend(lines(value).flat_map(pieces));
    texts
}

/// What follows the scheme of an `Authorization` (RFC 9110 §11.4), whatever the scheme: `Token …`, `ApiKey …`.
fn credentials(value: &str) -> Option<&str> {
    let (scheme, credentials) = value.split_once(' ')?;
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_scheme && credentials.len() >= SHORTEST_LINE).then_some(credentials)
}

/// The values of cookies and connection strings, `session=…; region=eu`, that are secrets by their names or look as if
/// nobody made them up.
fn assigned(value: &str) -> impl Iterator<Item = &str> {
    const RANDOM_FROM: usize = 16;
    let is_random = |value: &str| {
        value.len() >= RANDOM_FROM
            && value.bytes().any(|byte| byte.is_ascii_digit())
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_%+/=~".contains(&byte))
    };
    let pairs = value.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(name, value)| name_is_capability(name) || is_random(value)).map(|(_, value)| value)
}

pub(super) fn ordinary_texts(value: &str) -> Vec<String> {
    if !is_worth_hiding(value) {
        return Vec::new();
    }
    let mut texts = pieces(value);
    texts.extend(lines(value).filter(|line| is_worth_hiding(line)).flat_map(pieces));
    texts
}

/// The value, or its pieces where it is long.
fn pieces(value: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while rest.len() >= 2 * PIECE {
        let cut = (PIECE..rest.len()).find(|cut| rest.is_char_boundary(*cut)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces.push(rest.to_owned());
    pieces
}

/// The lines of a multi-line value that say something; the borders of PEM blocks are known to everybody.
fn lines(value: &str) -> impl Iterator<Item = &str> {
    let many = value.contains('\n');
    value
        .lines()
        .map(str::trim)
        .filter(move |line| many && line.chars().count() >= SHORTEST_LINE && !line.starts_with("-----"))
}

/// An ordinary value that is long enough and is not a path, a plain word, a region or a number.
fn is_worth_hiding(value: &str) -> bool {
    value.chars().count() >= SHORTEST_ORDINARY
        && ![is_path, is_word, is_region, is_number].iter().any(|known| known(value))
}

/// Also a list of paths: it begins with one.
fn is_path(value: &str) -> bool {
    let drive =
        |bytes: &[u8]| matches!(bytes, [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    ["/", "~/", "./", "../", "\\\\"].iter().any(|root| value.starts_with(root)) || drive(value.as_bytes())
}

fn is_number(value: &str) -> bool {
    value.parse::<f64>().is_ok()
        || value.bytes().all(|byte| byte.is_ascii_digit() || b".,:+-/_ ".contains(&byte))
}

/// One word: letters in the case of a word, and no more of them than words have.
fn is_word(value: &str) -> bool {
    const LONGEST: usize = 24;
    let after_first = value.chars().skip(1);
    let is_cased = !after_first.clone().any(char::is_uppercase) || !value.chars().any(char::is_lowercase);
    is_cased && value.chars().count() <= LONGEST && value.chars().all(char::is_alphabetic)
}

/// Regions and zones of the clouds, which everybody knows: `ap-southeast-2`, `northamerica-northeast1-a`.
fn is_region(value: &str) -> bool {
    let is_part = |part: &str| {
        let after_letters = part.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        let after_digits = after_letters.trim_start_matches(|letter: char| letter.is_ascii_digit());
        after_letters.len() - after_digits.len() <= 2
            && after_digits.len() <= 1
            && !after_digits.contains(char::is_uppercase)
    };
    (2..=4).contains(&value.split('-').count())
        && value.split('-').all(|part| !part.is_empty() && is_part(part))
        && value.contains(|letter: char| letter.is_ascii_digit())
}
