//! The words of the rules, by the part they play in a name. Words of the language and of the trade, no names of products,
//! but for [`KNOWN_TAILS`].

/// Words, with spaces between them.
pub(super) type Words = &'static str;

/// Which word has to stand, or must not stand, directly before a secret noun.
pub(super) enum When {
    Always,
    Unless(Words),
    After(Words),
    AfterAnyBut(Words),
}

use When::{After, AfterAnyBut, Always, Unless};

/// Nouns that make a name capability-bearing when they end it.
pub(super) const NOUNS: &[(Words, When)] = &[
    (
        "password passwords passwd passwrd passwds passw paswd pword passphrase passphrases passcode passkey passhash pw \
            pswd passwort kennwort wachtwoord senha contrasena contrasenia clave motdepasse mdp haslo heslo secret \
            secrets credential cred creds bearer pat tkn psk sessionid authorization mnemonic mnemonics salt pepper \
            otp totp",
        Always,
    ),
    ("jwt", Unless("verify check decode")),
    // Secure, third-party and cross-site ones are settings of a browser.
    ("cookie cookies", Unless("secure insecure party site strict httponly consent")),
    // GOOGLE_APPLICATION_CREDENTIALS and its like hold the path of a file; CORS has a switch of this name.
    ("credentials", Unless("application cors")),
    (
        "pass",
        Unless("single multi first second one two max num render fast boarding build full dry pre post"),
    ),
    // PWD by itself is the working directory.
    ("pwd", AfterAnyBut("old init initial current start host project local workspace working")),
    // Language models count tokens, tokenizers name them, APIs page with them, chains trade them.
    (
        "token",
        Unless(
            "max min per input output eos bos pad unk sep cls stop mask special start end begin padding \
            separator delimiter sentinel public pub next pagination continuation sync native gas quote fee erc reward \
            governance wrapped collateral staking lp nft",
        ),
    ),
    (
        "tokens",
        After(
            "api access auth oauth bot refresh bearer personal session service admin user client app secret \
            security device webhook workspace account agent worker",
        ),
    ),
    // Keys that are published, that address data, that name things in a program, that are pressed, and those whose variable
    // holds a path (MYSQL_SSL_KEY).
    (
        "key",
        Unless(
            "public pub site \
            primary foreign unique composite natural surrogate candidate sort sorting partition range row \
            column field index cache object group grouping order join shard routing registry lookup bucket \
            record entity entry document property attribute item message metric tag label dictionary mapping \
            idempotency dedupe dedup deduplication state store backend lock mutex queue topic query filter \
            limit counter parent child \
            host config configuration setting settings feature flag option preference param template variant \
            context trace span job task translation i18n l10n locale language answer \
            file project issue space team board epic kms ssl tls https cert certificate ssh \
            table checkpoint blob doc page collection slot result output input response payload plan repo repository \
            story process definition active yaml \
            hot shortcut modifier meta compose ctrl shift arrow enter escape toggle",
        ),
    ),
    (
        "keys",
        After(
            "api access secret private auth ssh encryption signing master license service client admin jwt wallet \
            account deploy gateway provider",
        ),
    ),
    // Chinese clouds and payment services shorten a secret key so; it is also a sort key, and Slovak.
    (
        "sk",
        AfterAnyBut("table index gsi lsi dynamo dynamodb cache sort pk locale lang language country site"),
    ),
    ("skey", Always),
    // The header itself, as in `Authorization: …`; plain AUTH is as often a mode or a switch.
    ("header", After("auth authorization bearer cookie")),
    // As many as a server puts on each of its requests, `Authorization` among them; those of CORS are a policy.
    ("headers", After("mcp api auth authorization otlp")),
    ("auth", After("basic bearer")),
    // A shared access signature of Azure.
    ("sas", After("azure storage account blob container queue share")),
    ("code", After("access auth security unlock pairing recovery activation mfa 2fa otp totp")),
    ("codes", After("access backup recovery")),
    // Those of boards and chips are numbers.
    ("pin", After("user card sim account device login admin access unlock security vault wallet phone bank")),
    ("phrase", After("seed secret recovery pass mnemonic")),
    ("seed", After("wallet master signing totp otp mfa 2fa account private xrp xrpl")),
    ("keypair", After("wallet payer signer deployer authority operator solana")),
    (
        "pk",
        After(
            "wallet deployer signer eth evm account private owner relayer operator funder payer trading sol solana",
        ),
    ),
    ("pem", After("private")),
    ("xprv nsec", Always),
    // What the session cookies of sites are called, and the tokens of Slack by how they begin.
    ("sessdata phpsessid jsessionid xoxb xoxc xoxd xoxp", Always),
    ("signature", After("access")),
    // Telegram calls the secret of an application its API hash. Of what a person types the hash is soon guessed.
    ("hash", After("password passwd pass passphrase passcode pin api")),
    // Payment services sign with one.
    ("word", After("secret")),
    // Maps of Chinese vendors know no other key; elsewhere it is the half that is no secret (`ACCESS_KEY_ID`).
    ("ak", After("map maps")),
    // Connection strings carry the password (ADO.NET, Azure storage); a URL or DSN is judged by its value.
    ("string str strings", After("connection connections conn session cookie")),
    ("connectionstring connectionstrings connstring connstr", Always),
    // The key file of a service account, pasted.
    ("json base64 b64 info content contents", After("account credential credentials creds kubeconfig")),
    ("data yaml", After("kubeconfig")),
];

/// Plural nouns count as often as they list: `MAX_SESSION_TOKENS`.
pub(super) const QUANTITIES: Words = "max min num total limit budget";

/// Secret nouns in the plural: what [`QUANTITIES`] count and [`VERBS`] are done to.
pub(super) const PLURALS: Words =
    "passwords secrets credentials creds cookies tokens keys mnemonics signatures";

/// Ends of names that say more than their last word does.
pub(super) const ORDINARY_TAILS: &[&[&str]] =
    &[&["next", "page", "token"], &["previous", "page", "token"], &["prev", "page", "token"]];

/// Ends of names that programs have settled on though their words do not say it: redis-cli and the images of Redis, npm's
/// `_auth`, Docker's credentials as CI systems pass them, `user/password` of the images of Neo4j, the session key of Bitwarden's CLI
/// and those of Telegram clients, Matomo's `token_auth`, the encryption of Active Record and of `LibreChat`, the secret half of an
/// `AppRole` of Vault, the role of Supabase that may do everything, what sends events to `PagerDuty`, the session cookies of `LinkedIn`,
/// Bilibili and Deezer.
pub(super) const KNOWN_TAILS: &[&[&str]] = &[
    &["redis", "auth"],
    &["rediscli", "auth"],
    &["npm", "config", "auth"],
    &["npm", "auth"],
    &["docker", "auth", "config"],
    &["docker", "auth"],
    &["neo4j", "auth"],
    &["bw", "session"],
    &["telegram", "session"],
    &["tg", "session"],
    &["string", "session"],
    &["token", "auth"],
    &["encryption", "primary", "key"],
    &["creds", "iv"],
    &["vault", "secret", "id"],
    &["role", "secret", "id"],
    &["approle", "secret", "id"],
    &["supabase", "service", "role"],
    &["pagerduty", "routing", "key"],
    &["li", "at"],
    &["bili", "jct"],
    &["deezer", "arl"],
];

/// Words that make the name a switch or a policy, wherever they stand.
pub(super) const SWITCHES: Words = "enable disable use allow require requires skip has is no with without show hide redact rotate \
            ignore validate expose should publishable generate remember forgot without";

/// Verbs that make it one where they begin the name and what they do it to is many: `MASK_SECRETS`, but `LOG_INGEST_TOKEN`.
pub(super) const VERBS: Words = "accept detect find mask scan print log count track block check store strip filter encrypt persist save load \
            reject forward send import export clear purge reuse share dump include exclude";

/// Last words that only tell which one of several, for which stage, for whom, or how it is written down.
pub(super) const TRAILERS: Words = "prod production dev development stage staging test testing sandbox live local demo qa uat \
            preview primary secondary backup fallback default main alt old new previous current override \
            replica leader follower reader writer readonly read write ro rw admin root \
            eu us uk apac emea global work personal home team org company shared internal \
            value val base64 b64 json pem hex string str raw content contents data encoded plain plaintext \
            text base bot free paid pro premium trial private cn au jp sg intl first second third one two three";

/// Pairs that mean a secret even when the owner's name follows them.
pub(super) const PAIRS: &[(&str, &str)] = &[
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
    ("api", "keys"),
    ("auth", "key"),
    ("session", "token"),
    ("app", "secret"),
    ("signing", "key"),
    ("signing", "secret"),
    ("encryption", "key"),
    ("webhook", "secret"),
    ("jwt", "secret"),
    ("service", "token"),
    ("app", "password"),
    ("db", "password"),
    ("root", "password"),
    ("admin", "password"),
    ("connection", "string"),
    ("connection", "strings"),
];

/// Nouns that a few write before what they belong to: `PASSWORD_DB`.
pub(super) const LEADING: Words = "password passwd pwd secret";

/// What may then follow.
pub(super) const OWNERS: Words =
    "db database email mail smtp ftp ssh user login api app bot jwt cookie session access refresh";

/// Words about a secret: after a pair they say that the value is something else.
pub(super) const ABOUT: Words = "id ids sid name names url urls uri endpoint host port path paths file files filename dir directory \
            location folder type types mode kind prefix suffix header headers param parameter query ttl \
            expiry expires expiration expire lifetime lifespan duration days hours minutes mins seconds secs ms age \
            timeout limit limits count length len size max min \
            format algorithm alg version enabled disabled required optional scheme scope scopes audience \
            issuer source provider env var variable field column placeholder manager store storage backend \
            arn region label alias description policy rotation cache interval refresh validation validator \
            verification check auth authentication hint owner user username email command cmd script helper \
            index status state usage cost price permissions permission role roles method strategy service \
            server docs help ref reference last \
            endpoints hosts ports users usernames emails domains domain origins addresses address allowed denied \
            list lists restriction restrictions secure insecure httponly samesite cool down cooldown renewal \
            grace leeway skew threshold quota warning error errors log logs logging tracking monitor alert \
            alerts audit debug generator generation handler callback redirect retry retries delay wait window \
            reset change strength complexity iterations rounds hints history derivation bits bytes reader parser \
            rate pool map mapping regex pattern separator delimiter example template schema";

/// Nouns that are taken off the end of a run-together word whatever stands before them.
pub(super) const SUFFIXES: Words = "password passwd passphrase token tokens secret credential credentials authorization cookie \
            cookies mnemonic passcode apikey apikeys accesskey secretkey privatekey privkey authkey signingkey \
            encryptionkey masterkey licensekey";

/// What stands before `key` in a run-together word: `monkey` and `hotkey` are no keys.
pub(super) const KEY_STEMS: Words = "api app access secret private priv auth license licence encryption signing master client service \
            account user public pub primary ssl tls";

/// What stands before `pass` and `pwd` in a run-together word: `bypass`, `compass` and `OLDPWD` are no passwords.
pub(super) const PASS_STEMS: Words = "db sql pg mysql postgres mongo redis mqtt ssh ftp sftp smtp imap pop mail email ldap rpc http \
            proxy api app login auth user admin root key wifi web vpn sa oracle ora mssql mariadb es elastic rabbitmq sudo bind \
            store keystore truststore router bot";

pub(super) fn listed(words: Words, word: &str) -> bool {
    words.split_ascii_whitespace().any(|listed| listed == word)
}
