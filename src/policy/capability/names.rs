//! Names: an English compound says at its end what it is. `TOKEN_URL` is a URL, `URL_TOKEN` a token.
//!
//! 1. The name is split into lower-case words at `_`, `-`, `.` and camelCase; run-together words (`PGPASSWORD`, `apikey`)
//!    are taken apart where a secret noun ends them; numbers are dropped.
//! 2. A word that makes the name a switch (`REQUIRE_TOKEN`) says no.
//! 3. The last word says yes when it is a secret noun in the company that noun asks for ([`NOUNS`]).
//! 4. A last word that only says which or how written (`_PROD`, `_BASE64`, [`TRAILERS`]) is taken off, and 3 asked again.
//! 5. An unmistakable pair may have its owner behind it (`API_KEY_ACME`), unless that is a word about the pair (`API_KEY_HEADER`).

/// Words, with spaces between them.
type Words = &'static str;

/// Which word has to stand, or must not stand, directly before a secret noun.
enum When {
    Always,
    Unless(Words),
    After(Words),
    AfterAnyBut(Words),
}

use When::{After, AfterAnyBut, Always, Unless};

/// Nouns that make a name capability-bearing when they end it.
const NOUNS: &[(Words, When)] = &[
    (
        "password passwords passwd passwrd passphrase passcode pw pswd passwort kennwort senha contrasena \
            secret secrets credential creds bearer jwt pat tkn cookie cookies authorization mnemonic salt \
            otp totp",
        Always,
    ),
    // GOOGLE_APPLICATION_CREDENTIALS and its like hold the path of a file.
    ("credentials", Unless("application")),
    ("pass", Unless("single multi first second one two max num render fast boarding")),
    // PWD by itself is the working directory.
    ("pwd", AfterAnyBut("old init initial current start host project local workspace working")),
    // Language models count tokens, tokenizers name them, APIs page with them, chains trade them.
    (
        "token",
        Unless(
            "max min per input output eos bos pad unk sep cls stop mask special next pagination \
            continuation sync native gas quote fee erc",
        ),
    ),
    (
        "tokens",
        After(
            "api access auth oauth bot refresh bearer personal session service admin user client app secret \
            security",
        ),
    ),
    // Keys that are published, that address data, that are pressed, and those whose variable holds a path (MYSQL_SSL_KEY).
    (
        "key",
        Unless(
            "public pub site host primary foreign unique composite sort sorting partition range row column \
            field index cache object group grouping order join shard routing registry lookup config \
            configuration message metric item record entity entry document property attribute tag label \
            dictionary bucket file project issue space team board epic idempotency dedupe kms ssl tls hot \
            shortcut modifier meta compose param",
        ),
    ),
    ("keys", After("api access secret private auth ssh encryption signing master license service client")),
    // The header itself, as in `Authorization: …`; plain AUTH is as often a mode or a switch.
    ("header", After("auth authorization bearer")),
    ("auth", After("basic")),
    ("code", After("access auth")),
    ("phrase", After("seed secret recovery pass mnemonic")),
    ("seed", After("wallet master")),
    ("signature", After("access")),
    // Telegram calls the secret of an application its API hash.
    ("hash", After("password passwd api")),
    // Connection strings carry the password (ADO.NET, Azure storage); a URL or DSN is judged by its value.
    ("string str", After("connection conn session")),
    ("connstring connstr", Always),
    // The key file of a service account, pasted.
    ("json base64 info", After("account credential credentials creds")),
];

/// Plural nouns count as often as they list: `MAX_SESSION_TOKENS`.
const QUANTITIES: Words = "max min num total limit budget";

/// Words that make the name a switch or a policy, wherever they stand.
const SWITCHES: Words = "enable disable use allow require requires skip has is no with without show hide redact rotate \
            ignore validate expose should publishable";

/// Last words that only tell which one of several, for which stage, or how it is written down.
const TRAILERS: Words = "prod production dev development stage staging test testing sandbox live local demo qa uat \
            preview primary secondary backup fallback default main alt old new previous current override \
            readonly read write ro rw admin root value val base64 b64 json pem hex string str raw content \
            contents data encoded plain plaintext text base";

/// Pairs that mean a secret even when the owner's name follows them.
const PAIRS: &[(&str, &str)] = &[
    ("api", "key"),
    ("api", "token"),
    ("api", "secret"),
    ("access", "token"),
    ("auth", "token"),
    ("bearer", "token"),
    ("refresh", "token"),
    ("bot", "token"),
    ("secret", "key"),
    ("private", "key"),
    ("access", "key"),
    ("client", "secret"),
];

/// Words about a secret: after a pair they say that the value is something else.
const ABOUT: Words = "id ids name names url urls uri endpoint host port path paths file files filename dir directory \
            location folder type types mode kind prefix suffix header headers param parameter query ttl \
            expiry expires expiration expire lifetime age timeout limit limits count length len size max min \
            format algorithm alg version enabled disabled required optional scheme scope scopes audience \
            issuer source provider env var variable field column placeholder manager store storage backend \
            arn region label alias description policy rotation cache interval refresh validation validator \
            verification check auth authentication hint owner user username email command cmd script helper \
            index status state usage cost price permissions permission role roles method strategy service \
            server docs help ref reference last";

/// Nouns that are taken off the end of a run-together word whatever stands before them.
const SUFFIXES: Words = "password passwd passphrase token tokens secret credential credentials authorization apikey \
            apikeys";

/// What stands before `key` in a run-together word: `monkey` and `hotkey` are no keys.
const KEY_STEMS: Words = "api app access secret private priv auth license licence encryption signing master client service \
            account user public pub primary ssl tls";

/// What stands before `pass` and `pwd` in a run-together word: `bypass`, `compass` and `OLDPWD` are no passwords.
const PASS_STEMS: Words = "db sql pg mysql postgres mongo redis mqtt ssh ftp sftp smtp imap pop mail email ldap rpc http \
            proxy api app login auth user admin root key wifi";

/// Whether the name of a variable says that its value gives access to something. Case does not matter; linear in the name.
#[must_use]
pub fn name_is_capability(name: &str) -> bool {
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.iter().any(|word| listed(SWITCHES, word)) {
        return false;
    }
    let mut rest = words.as_slice();
    while let Some((last, before)) = rest.split_last() {
        if ends_in_secret(last, before) {
            return true;
        }
        if !listed(TRAILERS, last) && last.len() > 1 {
            break;
        }
        rest = before;
    }
    pair_with_owner(&words)
}

fn ends_in_secret(last: &str, before: &[&str]) -> bool {
    let previous = before.last();
    let follows = |others| previous.is_some_and(|previous| listed(others, previous));
    NOUNS.iter().filter(|(nouns, _)| listed(nouns, last)).any(|(_, when)| match when {
        Always => true,
        Unless(others) => !follows(others),
        After(others) => follows(others) && !before.iter().any(|word| listed(QUANTITIES, word)),
        AfterAnyBut(others) => previous.is_some() && !follows(others),
    })
}

fn pair_with_owner(words: &[&str]) -> bool {
    words.windows(2).enumerate().any(|(at, pair)| {
        let owner = &words[at + 2..];
        PAIRS.contains(&(pair[0], pair[1]))
            && (1..=2).contains(&owner.len())
            && !owner.iter().any(|word| listed(ABOUT, word))
    })
}

fn listed(words: Words, word: &str) -> bool {
    words.split_ascii_whitespace().any(|listed| listed == word)
}

/// The words of a name, in lower case, without numbers.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for piece in name.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let mut start = 0;
        for end in 1..=piece.len() {
            if end == piece.len() || is_hump(piece.as_bytes(), end) {
                take_apart(&piece[start..end].to_ascii_lowercase(), &mut words);
                start = end;
            }
        }
    }
    words
}

/// `apiKey` and `base64Key` break before `K`, `APIKey` too.
fn is_hump(piece: &[u8], at: usize) -> bool {
    let (before, here) = (piece[at - 1], piece[at]);
    here.is_ascii_uppercase()
        && (!before.is_ascii_uppercase() || piece.get(at + 1).is_some_and(u8::is_ascii_lowercase))
}

fn take_apart(word: &str, words: &mut Vec<String>) {
    // Longer runs of letters are no words; the limit bounds the recursion.
    const LONGEST: usize = 64;
    if listed(TRAILERS, word) {
        words.push(word.to_owned());
        return;
    }
    let word = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if let Some((stem, noun)) = compound(word).filter(|_| word.len() <= LONGEST) {
        take_apart(stem, words);
        // `apikey` is a suffix because its stem may be anything; as words it is a pair like any other.
        if let Some(noun) = noun.strip_prefix("api") {
            words.push("api".to_owned());
            words.push(noun.to_owned());
        } else {
            words.push(noun.to_owned());
        }
    } else if !word.is_empty() {
        words.push(word.to_owned());
    }
}

fn compound(word: &str) -> Option<(&str, &str)> {
    let cut = |noun: &str| word.strip_suffix(noun).map(|stem| (stem, &word[stem.len()..]));
    let cut_after = |stems, noun| cut(noun).filter(|(stem, _)| listed(stems, stem));
    SUFFIXES
        .split_ascii_whitespace()
        .find_map(cut)
        .filter(|(stem, noun)| !stem.is_empty() || noun.starts_with("api"))
        .or_else(|| cut_after(KEY_STEMS, "key"))
        .or_else(|| cut_after(PASS_STEMS, "pass"))
        .or_else(|| cut_after(PASS_STEMS, "pwd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names typical of servers in use, labelled by hand: `1` holds a capability, `0` does not.
    const LABELLED: &str = include_str!("names.tsv");

    #[test]
    fn the_names_of_the_design_are_judged_as_it_says() {
        for name in ["GITHUB_TOKEN", "PGPASSWORD", "API_1_HEADER_AUTHORIZATION"] {
            assert!(name_is_capability(name), "{name}");
        }
        for name in [
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKENS",
            "KEYCLOAK_URL",
            "TOKEN_URL",
            "OKTA_KEY_ID",
            "SECRETS_MANAGER_REGION",
        ] {
            assert!(!name_is_capability(name), "{name}");
        }
    }

    #[test]
    fn every_labelled_name_is_judged_as_labelled() {
        let (mut secret, mut ordinary, mut wrong) = (0, 0, Vec::new());
        for line in LABELLED.lines().skip(1) {
            let (name, label) = line.split_once('\t').unwrap_or_default();
            let expected = label == "1";
            *(if expected { &mut secret } else { &mut ordinary }) += 1;
            if name_is_capability(name) != expected {
                wrong.push(line);
            }
        }
        assert!(secret >= 60 && ordinary >= 60, "{secret} secret and {ordinary} ordinary names");
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn case_and_the_way_words_are_joined_do_not_matter() {
        for name in [
            "acme_api_key",
            "acmeApiKey",
            "AcmeAPIKey",
            "ACME-API-KEY",
            "ACMEAPIKEY",
            "acme.apikey",
            "AcmeApikey2",
        ] {
            assert!(name_is_capability(name), "{name}");
        }
    }

    #[test]
    fn a_word_that_only_contains_a_secret_word_is_another_word() {
        for name in [
            "MONKEY",
            "COMPASS",
            "BYPASS",
            "PATTERN",
            "PASSENGERS",
            "SECRETARY",
            "KEYBOARD",
            "TOKENIZER",
            "PWD",
            "OLDPWD",
        ] {
            assert!(!name_is_capability(name), "{name}");
        }
    }

    #[test]
    fn a_name_of_a_mebibyte_is_judged() {
        assert!(name_is_capability(&"token".repeat(1 << 18).replace("token", "TOKEN_")));
        assert!(!name_is_capability(&"token".repeat(1 << 18)));
    }

    #[test]
    fn a_name_without_letters_is_no_capability() {
        for name in ["", "_", "__1", "42", "é"] {
            assert!(!name_is_capability(name), "{name}");
        }
    }
}
