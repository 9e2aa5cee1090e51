use super::*;
use crate::policy::capability::formats::FORMATS;

/// A token's body of the wanted length, in no vendor's real use. Built here so that no scanner takes this file for a leak.
fn body(length: usize) -> String {
    "Ab3dE5fG7hJ9kL2mN4pQ6rS8tV".chars().cycle().take(length).collect()
}

fn hex(length: usize) -> String {
    "0a1b2c3d4e5f6978".chars().cycle().take(length).collect()
}

fn jwt() -> String {
    let header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
    format!("{header}.eyJzdWIiOiIxIn0.{}", body(43))
}

fn aws_pair() -> String {
    format!("AKIA{}:{}/{}", "QWERTYUIOPASDF23", body(19), body(20))
}

#[track_caller]
fn assert_format(value: &str, expected: Option<&str>) {
    assert_eq!(value_format(value), expected, "{value}");
}

#[test]
fn every_prefix_of_the_table_is_found_with_its_least_length_and_not_with_one_less() {
    for format in FORMATS {
        let alphabet: Vec<u8> = (b'0'..=b'z').filter(|byte| (format.alphabet)(*byte)).collect();
        let body: String =
            alphabet.iter().rev().cycle().take(format.least).map(|byte| char::from(*byte)).collect();
        assert_format(&format!("{}{body}", format.prefix), Some(format.what));
        let shorter = format!("{}{}", format.prefix, &body[1..]);
        assert_ne!(value_format(&shorter), Some(format.what), "{shorter}");
    }
}

#[test]
fn the_formats_of_the_design_are_found() {
    assert_format(&format!("ghp_{}", body(36)), Some("a GitHub token"));
    assert_format(&format!("github_pat_{}_{}", body(22), body(59)), Some("a GitHub token"));
    assert_format(&format!("glpat-{}", body(20)), Some("a GitLab token"));
    assert_format(&format!("xoxb-2345678901-{}", body(24)), Some("a Slack token"));
    assert_format(&format!("sk-proj-{}", body(40)), Some("a secret API key (sk-)"));
    assert_format("sk-abcdefghijklmnopqrst", Some("a secret API key (sk-)"));
    assert_format(&aws_pair(), Some("an AWS secret key"));
    assert_format(&format!("AIza{}", body(35)), Some("a Google API key"));
    assert_format(&format!("npm_{}", body(36)), Some("an npm token"));
    assert_format(&format!("sk_live_{}", body(24)), Some("a Stripe key"));
    assert_format(&jwt(), Some("a JSON Web Token"));
    assert_format("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\n", Some("a private key"));
    assert_format("postgres://app:s3cret@db.internal:5432/app", Some("a URL with a password"));
    assert_format("redis://:s3cret@cache", Some("a URL with a password"));
    assert_format("Bearer tr4vel", Some("a bearer token"));
    assert_format("Basic dXNlcjpwYXNzd29yZA==", Some("Basic credentials"));
}

#[test]
fn a_token_is_found_inside_an_argument() {
    let token = format!("ghp_{}", body(36));
    for value in [
        format!("--token={token}"),
        format!("--{token}"),
        format!("https://{token}@github.com/acme/tools"),
        format!("{{\"token\":\"{token}\"}}"),
        format!("?token%3D{token}"),
        format!("token: «{token}»"),
    ] {
        assert_format(&value, Some("a GitHub token"));
    }
    assert_format("--header=Authorization: Bearer tr4vel", Some("a bearer token"));
    assert_format("{\"Authorization\": \"Bearer tr4vel\"}", Some("a bearer token"));
    assert_format("Authorization%3A%20bearer%20tr4vel", Some("a bearer token"));
    assert_format(&format!("a header with bearer {} in it", body(20)), Some("a bearer token"));
}

#[test]
fn ordinary_values_have_no_format() {
    for value in [
        "",
        "production",
        "eu-central-1",
        "/usr/local/bin/node",
        "https://api.example.com/v1?user=a:b@c",
        "http://[::1]:8080/mcp",
        "ssh://git@github.com/acme/tools.git",
        "user:name@example.com",
        "sk-SK",
        "secret_santa_list_of_the_whole_department_2024",
        "fc-barcelona",
        "pul-over",
        "BSA-approved",
        "sl.ack",
        "1//0",
        "access-production-database-read-only",
        "api_org_chart",
        "oy2k",
        "dp.pt.br",
        "re_export_all_the_things_from_this_module",
        "nsec1",
        "sk-learn-linear-regression-model",
        "risk-assessment-of-2024-and-later",
        "task-sk-abcdefghijklmnopqrst",
        "AKIAQWERTYUIOPASDF23",
        "550e8400-e29b-41d4-a716-446655440000",
        "d670460b4b4aece5915caf5c68d12f560a9fe3e4",
        "npm_config_registry_and_other_settings_of_npm",
        "Bearer",
        "Bearer token",
        "Bearer authentication",
        "we accept bearer tokens, basic authentication and digests",
        "Bearer certificates of deposit",
        "Basic authentication",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
        "-----BEGIN PUBLIC KEY-----\nMFkw\n",
        "-----BEGIN CERTIFICATE-----\nMIIB\n",
        "12:34:56",
        "a=1;b=2",
        "größer://ä:ö",
    ] {
        assert_format(value, None);
    }
}

#[test]
fn a_placeholder_is_no_secret() {
    let filler = "x".repeat(36);
    for value in [
        "postgres://user:${PASS}@host/db",
        "postgres://user:$PASS@host/db",
        "postgres://user:{{password}}@host/db",
        "postgres://user:<password>@host/db",
        "postgres://user:%DB_PASS%@host/db",
        "postgres://user:****@host/db",
        "postgres://user:xxx@host/db",
        "Bearer ${TOKEN}",
        "Bearer <token>",
        "Bearer your_token_here",
        "xoxb-your-token-here",
        &format!("ghp_{filler}"),
        &format!("sk-{filler}"),
    ] {
        assert_format(value, None);
    }
}

#[test]
fn a_connection_string_with_a_key_or_password_is_found_and_one_without_is_not() {
    let what = Some("a connection string with a password or key");
    assert_format(&format!("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==", body(86)), what);
    assert_format("Server=db;User Id=app;Password=s3cret;", what);
    assert_format("Server=db;Integrated Security=true;", None);
    assert_format("Server=db;User Id=app;Password=${DB_PASSWORD};", None);
}

#[test]
fn an_aws_secret_needs_its_id_or_its_name_beside_it() {
    let secret = format!("{}/{}", body(19), body(20));
    assert_format(&secret, None);
    assert_format(&format!("aws_secret_access_key = {secret}"), Some("an AWS secret key"));
    assert_format(&format!("{{\"secretAccessKey\":\"{secret}\"}}"), Some("an AWS secret key"));
}

#[test]
fn a_telegram_bot_token_is_found() {
    assert_format(&format!("1234567890:A{}", body(34)), Some("a Telegram bot token"));
    assert_format(&format!("{}:A{}", "1".repeat(20), body(34)), None);
}

/// What marks a place for some rule, so that one that read on from every mark to the end would do the square of the work.
const HOSTILE: [&str; 25] = [
    "sk-",
    "-sk-",
    " ghp_",
    "bearer ",
    "bearer%20",
    "%20bearer",
    "basic ",
    " Bearer a",
    "eyJ.",
    "eyJ-",
    ".eyJa",
    "eyJa.eyJa",
    "eyJrIjoi.",
    "://",
    "a://a:",
    "a://",
    "-----BEGIN ",
    ":A",
    "1:A",
    "AKIA",
    "a=b;",
    "@",
    "Q~",
    ".",
    "&sig=",
];

#[test]
fn the_work_on_a_mebibyte_grows_with_its_length_and_not_with_its_square() {
    let work = |unit: &str, length: usize| {
        let value = unit.repeat(length / unit.len());
        work::of(|| assert_eq!(value_format(&value), None, "{unit}"))
    };
    for unit in HOSTILE {
        let (part, whole) = (work(unit, 1 << 14), work(unit, 1 << 20));
        // From each place a bounded number of bytes, once to read and once to tell from a placeholder.
        assert!(whole <= (2 * LOOKED_AT) << 20, "{unit}: {whole} bytes looked at");
        assert!(whole <= 70 * part + (1 << 16), "{unit}: {part} bytes, then {whole}");
    }
}

#[test]
fn a_token_at_the_end_of_a_long_value_is_found() {
    for unit in HOSTILE {
        let value = format!("{} ghp_{}", unit.repeat((1 << 15) / unit.len()), hex(36));
        assert_eq!(value_format(&value), Some("a GitHub token"), "{unit}");
    }
}

#[test]
fn tokens_with_a_mark_in_their_middle_are_found() {
    assert_format(&format!("ab~8Q~{}", body(34)), Some("an Azure client secret"));
    assert_format(&format!("secret=abc8Q~{}", body(31)), Some("an Azure client secret"));
    assert_format(&format!("abcdQ~{}", body(34)), None);
    assert_format(&format!("{}.atlasv1.{}", body(14), body(67)), Some("a Terraform token"));
    assert_format(&format!("pat{}.{}", body(14), hex(64)), Some("an Airtable token"));
    assert_format(&format!("{}.{}", body(17), hex(64)), None);
    assert_format(&format!("{}AZDO{}", body(76), body(4)), Some("an Azure DevOps token"));
    assert_format("compat.0123456789abcdef", None);
}

#[test]
fn a_signed_url_is_found_and_another_query_is_not() {
    let what = Some("a signed URL");
    let signature = format!("{}%3D", body(43));
    assert_format(&format!("https://a.blob.core.windows.net/c?sv=2024-01-01&sig={signature}"), what);
    assert_format(&format!("https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={}", hex(64)), what);
    assert_format("https://example.com/?sig=v1&design=modern", None);
    assert_format(&format!("https://example.com/?design={signature}"), None);
    assert_format("https://example.com/?sv=1&sig=<signature that you were given by the portal>", None);
}

#[test]
fn a_key_of_putty_is_a_private_key() {
    let key = "PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 2\nAAAA\nPrivate-Lines: 1\nAAAA\n";
    assert_format(key, Some("a private key"));
    assert_format("PuTTY-User-Key-File-3 is the first line", None);
}

#[test]
fn the_secret_parts_of_urls_and_headers_are_taken_out() {
    assert_eq!(secret_parts("postgres://app:s3c%2Fret%%2@db/app"), ["s3c%2Fret%%2", "s3c/ret%%2"]);
    assert_eq!(secret_parts("Bearer tr4vel.card"), ["tr4vel.card"]);
    assert_eq!(secret_parts("Basic dXNlcjpwYXNzd29yZA=="), ["dXNlcjpwYXNzd29yZA==", "password"]);
    assert!(secret_parts("https://example.com").is_empty());
}
