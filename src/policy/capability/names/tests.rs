use super::*;

/// Names of servers in use, of products, and traps, labelled by hand before the rules judged them: `1` holds a capability, `0` does
/// not, as in the figures of docs/capabilities.md. The rules were mended after each of the blind lists, so a few are still missed.
const LABELLED: [(&str, &str); 8] = [
    ("written-with-the-rules", include_str!("labelled/written-with-the-rules.tsv")),
    ("blind-1", include_str!("labelled/blind-1.tsv")),
    ("blind-2", include_str!("labelled/blind-2.tsv")),
    ("blind-3", include_str!("labelled/blind-3.tsv")),
    ("blind-4", include_str!("labelled/blind-4.tsv")),
    ("blind-5", include_str!("labelled/blind-5.tsv")),
    ("blind-6", include_str!("labelled/blind-6.tsv")),
    ("blind-7", include_str!("labelled/blind-7.tsv")),
];

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
fn at_least_98_in_100_labelled_capabilities_are_found_and_at_most_1_in_100_others() {
    let (mut found_of_all, mut missed_of_all) = (0, 0);
    for (list, text) in LABELLED {
        let (mut secret, mut ordinary, mut missed, mut refused) = (0, 0, Vec::new(), Vec::new());
        for line in text.lines().skip(1) {
            let (name, label) = line.split_once('\t').unwrap_or_default();
            let found = name_is_capability(name);
            match label {
                "1" if found => secret += 1,
                "1" => missed.push(name),
                "0" if found => refused.push(name),
                "0" => ordinary += 1,
                _ => panic!("{list}: {line}"),
            }
        }
        assert!(secret > 60 && ordinary > 90, "{list}: {secret} secret and {ordinary} ordinary names");
        // Of each list 96: a few names of `blind-5` hold secrets in JSON, and no word of theirs says so.
        assert!(missed.len() * 24 <= secret, "{list}: missed {missed:?}");
        assert!(refused.len() * 99 <= ordinary, "{list}: refused {refused:?}");
        found_of_all += secret;
        missed_of_all += missed.len();
    }
    assert!(missed_of_all * 49 <= found_of_all, "missed {missed_of_all} of {}", found_of_all + missed_of_all);
}

#[test]
fn a_word_that_the_rules_have_not_heard_of_says_nothing() {
    let vocabulary = Vocabulary::without(["cookie".to_owned(), "token".to_owned()].into());
    for name in ["ACME_COOKIE", "ACME_TOKEN", "ACMETOKEN", "BOT_TOKEN_ACME"] {
        assert!(name_is_capability(name) && !vocabulary.finds_capability(name), "{name}");
    }
    assert!(vocabulary.finds_capability("ACME_PASSWORD"));
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
        "ACMESECRETKEY",
        "acmesecretaccesskey",
        "ACME2PASSWORD",
        "DB2PWD",
        "NEO4J_AUTH",
    ] {
        assert!(name_is_capability(name), "{name}");
    }
}

#[test]
fn what_a_secret_noun_belongs_to_decides() {
    for name in [
        "OPENAPI_MCP_HEADERS",
        "BACKUP_CODES",
        "SIM_PIN",
        "PRIVATE_PEM",
        "COOKIE_STRING",
        "SESSION_COOKIES",
        "PASSWORD_DB",
        "MPESA_PASSKEY",
        "TOTP_SEED",
        "ALIYUN_SK",
        "APPROLE_SECRET_ID",
        "KUBECONFIG_BASE64",
        "CONNECTION_STRING_ORDERS",
    ] {
        assert!(name_is_capability(name), "{name}");
    }
    for name in [
        "CORS_ALLOWED_HEADERS",
        "COUNTRY_CODES",
        "GPIO_PIN",
        "PUBLIC_PEM",
        "FORMAT_STRING",
        "SECURE_COOKIES",
        "PASSWORD_POLICY",
        "MAPBOX_PUBLIC_TOKEN",
        "MASK_PASSWORDS",
        "MAX_PASSWORDS",
        "NEXT_PAGE_TOKEN",
        "HTTPS_KEY",
        "DYNAMODB_SK",
        "AWS_SECRET_ID",
        "I18N_KEY",
        "ACCESS_TOKEN_LIFESPAN",
        "PERSIST_COOKIES",
    ] {
        assert!(!name_is_capability(name), "{name}");
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
