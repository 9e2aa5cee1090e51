//! Secrets that begin with nothing special: a name beside them tells, or a mark in their middle.

use memchr::memmem;

use super::{LOOKED_AT, is_placeholder, run, starts_token};
use crate::policy::capability::formats::{base64, base64url};

/// An access key id names a key and is no secret; the 40 characters that belong to it have no mark of their own, so they
/// count where the id or their name stands in the same value.
pub(super) fn aws_secret(value: &str) -> Option<&'static str> {
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
pub(super) fn account_key(value: &str) -> Option<&'static str> {
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
pub(super) fn bot_token(value: &str) -> Option<&'static str> {
    let bytes = value.as_bytes();
    memmem::find_iter(bytes, ":A").find_map(|colon| {
        let digits = bytes[..colon].iter().rev().take(17).take_while(|byte| byte.is_ascii_digit()).count();
        let secret = run(&bytes[colon + 1..], base64url, 36);
        ((8..=16).contains(&digits) && secret.len() == 35 && !is_placeholder(secret))
            .then_some("a Telegram bot token")
    })
}

/// Tokens that a mark in their middle tells: what stands before it and behind it, each at least so long.
pub(super) fn composed(value: &str) -> Option<&'static str> {
    type Part = (fn(u8) -> bool, usize);
    const TOKENS: [(&str, Part, Part, &str); 4] = [
        // Entra: three characters and a digit, `Q~`, 31 or more.
        ("Q~", (entra, 4), (entra, 31), "an Azure client secret"),
        (".atlasv1.", (|byte| byte.is_ascii_alphanumeric(), 14), (base64url, 60), "a Terraform token"),
        // Airtable: `pat` and 14 characters, 64 hexadecimal digits.
        (
            ".",
            (|byte| byte.is_ascii_alphanumeric(), 17),
            (|byte| byte.is_ascii_hexdigit(), 64),
            "an Airtable token",
        ),
        // Azure DevOps since 2024: 76 characters, the mark, 4.
        (
            "AZDO",
            (|byte| byte.is_ascii_alphanumeric(), 76),
            (|byte| byte.is_ascii_alphanumeric(), 4),
            "an Azure DevOps token",
        ),
    ];
    let bytes = value.as_bytes();
    TOKENS.iter().find_map(|(mark, (before, most), (after, least), what)| {
        memmem::find_iter(bytes, mark).find_map(|at| {
            let reach =
                bytes[at.saturating_sub(*most)..at].iter().rev().take_while(|byte| before(**byte)).count();
            let start = at - reach;
            let tail = run(&bytes[at + mark.len()..], *after, *least);
            let is_airtable = || bytes[start..].starts_with(b"pat");
            let is_entra = || bytes[at - 1].is_ascii_digit();
            let is_token = reach == *most
                && tail.len() == *least
                && starts_token(bytes, start)
                && (*mark != "." || is_airtable())
                && (*mark != "Q~" || is_entra());
            (is_token && !is_placeholder(tail)).then_some(*what)
        })
    })
}

fn entra(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'~' | b'.' | b'-')
}

/// The signature in the query of a shared access signature of Azure, and of a signed URL of AWS and Google.
pub(super) fn signed_url(value: &str) -> Option<&'static str> {
    const MARKS: [&str; 3] = ["sig=", "X-Amz-Signature=", "X-Goog-Signature="];
    let bytes = value.as_bytes();
    MARKS.iter().find_map(|mark| {
        memmem::find_iter(bytes, mark).find_map(|at| {
            let begins = matches!(bytes[..at], [.., b'?' | b'&']) || bytes[..at].ends_with(b"&amp;");
            let signature = run(
                &bytes[at + mark.len()..],
                |byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'+' | b'/' | b'-' | b'_' | b'=')
                },
                LOOKED_AT,
            );
            (begins && signature.len() >= 43 && !is_placeholder(signature)).then_some("a signed URL")
        })
    })
}
