//! The table of token formats that a prefix gives away.
//!
//! Sources: the published rules of gitleaks (config/gitleaks.toml, MIT) and the plugins of detect-secrets (Apache-2.0) for
//! prefixes, alphabets and lengths; the vendors' own words where they have published them: GitHub ("Behind GitHub's new
//! authentication token formats", 2021), GitLab ("Token overview", prefixes), Slack ("Token types"), Stripe ("API keys").
//! Lengths are the least a vendor has issued, or 20 where the prefix by itself is unmistakable: tokens grow.

/// A token that starts with `prefix` and goes on with at least `least` characters of `alphabet`.
pub(super) struct Format {
    pub(super) prefix: &'static str,
    pub(super) alphabet: fn(u8) -> bool,
    pub(super) least: usize,
    /// For a message: "looks like …".
    pub(super) what: &'static str,
}

const fn format(prefix: &'static str, alphabet: fn(u8) -> bool, least: usize, what: &'static str) -> Format {
    Format { prefix, alphabet, least, what }
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

pub(super) fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// `base64url` with the dots that join the parts of a composed token.
fn dotted(byte: u8) -> bool {
    base64url(byte) || byte == b'.'
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// A UUID, or hexadecimal parts that hyphens join.
fn hex_parts(byte: u8) -> bool {
    hex(byte) || byte == b'-'
}

/// The formats whose prefixes begin with this byte.
pub(super) fn formats_from(first: u8) -> &'static [&'static Format] {
    BY_FIRST.from(first)
}

/// The table in the order of first bytes. Made by the compiler: a search automaton of all prefixes, in its place, took 0.15 ms of
/// each process that judges a definition.
static BY_FIRST: ByFirst = ByFirst::of(FORMATS);

struct ByFirst {
    formats: [&'static Format; FORMATS.len()],
    /// Those from a byte on begin here.
    begin: [usize; 257],
}

impl ByFirst {
    const fn of(table: &'static [Format]) -> Self {
        let mut sorted = Self { formats: [&table[0]; FORMATS.len()], begin: [0; 257] };
        let (mut first, mut count) = (0, 0);
        while first < 256 {
            sorted.begin[first] = count;
            let mut at = 0;
            while at < table.len() {
                if table[at].prefix.as_bytes()[0] as usize == first {
                    sorted.formats[count] = &table[at];
                    count += 1;
                }
                at += 1;
            }
            first += 1;
        }
        sorted.begin[first] = count;
        sorted
    }

    fn from(&self, first: u8) -> &[&'static Format] {
        let first = usize::from(first);
        self.formats.get(self.begin[first]..self.begin[first + 1]).unwrap_or_default()
    }
}

pub(super) const FORMATS: &[Format] = &[
    format("ghp_", alphanumeric, 20, "a GitHub token"),
    format("gho_", alphanumeric, 20, "a GitHub token"),
    format("ghu_", alphanumeric, 20, "a GitHub token"),
    format("ghs_", alphanumeric, 20, "a GitHub token"),
    format("ghr_", alphanumeric, 20, "a GitHub token"),
    format("github_pat_", word, 22, "a GitHub token"),
    format("glpat-", dotted, 20, "a GitLab token"),
    format("gldt-", base64url, 20, "a GitLab token"),
    format("glrt-", dotted, 20, "a GitLab token"),
    format("glcbt-", base64url, 20, "a GitLab token"),
    format("glptt-", base64url, 20, "a GitLab token"),
    format("glft-", base64url, 20, "a GitLab token"),
    format("glrtr-", base64url, 20, "a GitLab token"),
    format("GR1348941", base64url, 20, "a GitLab token"),
    format("glimt-", base64url, 20, "a GitLab token"),
    format("glagent-", base64url, 20, "a GitLab token"),
    format("gloas-", base64url, 20, "a GitLab token"),
    format("glsoat-", base64url, 20, "a GitLab token"),
    format("glffct-", base64url, 20, "a GitLab token"),
    format("xoxa-", base64url, 10, "a Slack token"),
    format("xoxb-", base64url, 10, "a Slack token"),
    format("xoxc-", base64url, 10, "a Slack token"),
    format("xoxd-", |byte| base64(byte) || matches!(byte, b'%' | b'-' | b'='), 10, "a Slack token"),
    format("xoxe-", base64url, 10, "a Slack token"),
    format("xoxe.xox", dotted, 10, "a Slack token"),
    format("xoxp-", base64url, 10, "a Slack token"),
    format("xoxr-", base64url, 10, "a Slack token"),
    format("xoxs-", base64url, 10, "a Slack token"),
    format("xapp-", base64url, 10, "a Slack token"),
    format("hooks.slack.com/services/T", |byte| word(byte) || byte == b'/', 30, "a Slack webhook"),
    format("hooks.slack.com/workflows/T", |byte| word(byte) || byte == b'/', 30, "a Slack webhook"),
    format("hooks.slack.com/triggers/T", |byte| word(byte) || byte == b'/', 30, "a Slack webhook"),
    format(
        "webhook.office.com/webhookb2/",
        |byte| dotted(byte) || matches!(byte, b'/' | b'@'),
        70,
        "a Teams webhook",
    ),
    format("discord.com/api/webhooks/", |byte| base64url(byte) || byte == b'/', 70, "a Discord webhook"),
    format("discordapp.com/api/webhooks/", |byte| base64url(byte) || byte == b'/', 70, "a Discord webhook"),
    // OpenAI, Anthropic, OpenRouter, DeepSeek and many others.
    format("sk-", base64url, 20, "a secret API key (sk-)"),
    format("sk_live_", alphanumeric, 10, "a Stripe key"),
    format("sk_test_", alphanumeric, 10, "a Stripe key"),
    format("sk_prod_", alphanumeric, 10, "a Stripe key"),
    format("rk_live_", alphanumeric, 10, "a Stripe key"),
    format("rk_test_", alphanumeric, 10, "a Stripe key"),
    format("rk_prod_", alphanumeric, 10, "a Stripe key"),
    format("sq0atp-", base64url, 22, "a Square token"),
    format("sq0csp-", base64url, 43, "a Square secret"),
    format("access_token$production$", |byte| alphanumeric(byte) || byte == b'$', 49, "a PayPal token"),
    format("access_token$sandbox$", |byte| alphanumeric(byte) || byte == b'$', 49, "a PayPal token"),
    format("access-production-", hex_parts, 36, "a Plaid token"),
    format("access-development-", hex_parts, 36, "a Plaid token"),
    format("access-sandbox-", hex_parts, 36, "a Plaid token"),
    format("shippo_live_", hex, 40, "a Shippo token"),
    format("duffel_live_", base64url, 40, "a Duffel token"),
    format("duffel_test_", base64url, 40, "a Duffel token"),
    format("EZAK", alphanumeric, 54, "an EasyPost key"),
    format("EZTK", alphanumeric, 54, "an EasyPost key"),
    format("FLWSECK-", alphanumeric, 32, "a Flutterwave secret"),
    format("FLWSECK_TEST-", alphanumeric, 32, "a Flutterwave secret"),
    format("EAAM", alphanumeric, 100, "a Facebook token"),
    format("EAAC", alphanumeric, 100, "a Facebook token"),
    format("whsec_", base64, 20, "a webhook signing secret"),
    format("AIza", base64url, 35, "a Google API key"),
    format("GOCSPX-", base64url, 28, "a Google client secret"),
    format("ya29.", dotted, 20, "a Google access token"),
    format("1//0", base64url, 35, "a Google refresh token"),
    format("ABSK", base64, 109, "an AWS Bedrock API key"),
    format("bedrock-api-key-", base64, 60, "an AWS Bedrock API key"),
    format("npm_", alphanumeric, 36, "an npm token"),
    format("pypi-AgE", base64url, 50, "a PyPI token"),
    format("rubygems_", hex, 48, "a RubyGems key"),
    format("oy2", alphanumeric, 43, "a NuGet key"),
    format("CLOJARS_", alphanumeric, 60, "a Clojars token"),
    format("dckr_pat_", base64url, 20, "a Docker token"),
    format("dckr_oat_", base64url, 20, "a Docker token"),
    format("hf_", alphanumeric, 30, "a Hugging Face token"),
    format("api_org_", alphanumeric, 34, "a Hugging Face token"),
    // ElevenLabs.
    format("sk_", hex, 48, "a secret API key (sk_)"),
    format("csk-", alphanumeric, 40, "a Cerebras key"),
    format("tgp_v1_", base64url, 40, "a Together key"),
    format("lsv2_pt_", word, 40, "a LangSmith key"),
    format("lsv2_sk_", word, 40, "a LangSmith key"),
    format("fc-", hex, 32, "a Firecrawl key"),
    format("e2b_", hex, 40, "an E2B key"),
    format("BSA", base64url, 28, "a Brave Search key"),
    format("bb_live_", base64url, 20, "a Browserbase key"),
    format("gsk_", alphanumeric, 40, "a Groq key"),
    format("xai-", alphanumeric, 60, "an xAI key"),
    format("pplx-", alphanumeric, 40, "a Perplexity key"),
    format("r8_", alphanumeric, 36, "a Replicate token"),
    format("nvapi-", base64url, 60, "an NVIDIA key"),
    format("tvly-", base64url, 20, "a Tavily key"),
    format("pcsk_", word, 40, "a Pinecone key"),
    format("dop_v1_", hex, 64, "a DigitalOcean token"),
    format("doo_v1_", hex, 64, "a DigitalOcean token"),
    format("dor_v1_", hex, 64, "a DigitalOcean token"),
    format("dapi", hex, 32, "a Databricks token"),
    format("HRKU-", base64url, 36, "a Heroku key"),
    format("v1.0-", hex_parts, 171, "a Cloudflare key"),
    format("fo1_", base64url, 43, "a Fly.io token"),
    format("fm1a_", base64, 100, "a Fly.io token"),
    format("fm1r_", base64, 100, "a Fly.io token"),
    format("dnkey-", base64url, 79, "a Defined Networking key"),
    format("fio-u-", base64url, 64, "a Frame.io token"),
    format("nfp_", alphanumeric, 36, "a Netlify token"),
    format("rnd_", alphanumeric, 28, "a Render key"),
    format("fm2_", |byte| base64(byte) || matches!(byte, b'-' | b'_' | b'='), 100, "a Fly.io token"),
    format("vercel_blob_rw_", word, 30, "a Vercel token"),
    format("pscale_tkn_", dotted, 32, "a PlanetScale token"),
    format("pscale_pw_", dotted, 32, "a PlanetScale password"),
    format("pscale_oauth_", dotted, 32, "a PlanetScale token"),
    format("pul-", hex, 40, "a Pulumi token"),
    format("bkua_", hex, 40, "a Buildkite token"),
    format("CCIPAT_", word, 40, "a CircleCI token"),
    format("CCIPRJ_", word, 40, "a CircleCI token"),
    format("squ_", hex, 40, "a SonarQube token"),
    format("sqp_", hex, 40, "a SonarQube token"),
    format("sqa_", hex, 40, "a SonarQube token"),
    format("sgp_", |byte| hex(byte) || byte == b'_', 40, "a Sourcegraph token"),
    format("NRAK-", alphanumeric, 27, "a New Relic key"),
    format("NRII-", base64url, 32, "a New Relic key"),
    format("dt0c01.", dotted, 80, "a Dynatrace token"),
    format("dt0s16.", dotted, 80, "a Dynatrace token"),
    format("glsa_", word, 41, "a Grafana token"),
    format("glc_", base64, 32, "a Grafana token"),
    format("hvs.", base64url, 24, "a Vault token"),
    format("lin_api_", alphanumeric, 32, "a Linear key"),
    format("ntn_", alphanumeric, 40, "a Notion token"),
    // `{"k":` in base64.
    format("eyJrIjoi", base64, 60, "a Grafana token"),
    format("hvb.", base64url, 24, "a Vault token"),
    format("hvr.", base64url, 24, "a Vault token"),
    format("dp.pt.", alphanumeric, 40, "a Doppler token"),
    format("dp.st.", |byte| alphanumeric(byte) || matches!(byte, b'.' | b'_' | b'-'), 40, "a Doppler token"),
    format("dp.ct.", alphanumeric, 40, "a Doppler token"),
    format("dp.sa.", alphanumeric, 40, "a Doppler token"),
    format("ops_eyJ", base64url, 200, "a 1Password token"),
    format("lin_oauth_", hex, 32, "a Linear token"),
    format("secret_", alphanumeric, 43, "a Notion token"),
    format("figd_", base64url, 38, "a Figma token"),
    format("figo_", base64url, 38, "a Figma token"),
    format("pat-na1-", hex_parts, 36, "a HubSpot token"),
    format("pat-eu1-", hex_parts, 36, "a HubSpot token"),
    format("sl.", base64url, 130, "a Dropbox token"),
    format("CFPAT-", base64url, 43, "a Contentful token"),
    format("rdme_", alphanumeric, 70, "a ReadMe key"),
    format("xkeysib-", hex_parts, 64, "a Brevo key"),
    format("PMAK-", base64url, 59, "a Postman key"),
    format("SG.", dotted, 66, "a SendGrid key"),
    format("shpat_", hex, 32, "a Shopify token"),
    format("shpca_", hex, 32, "a Shopify token"),
    format("shppa_", hex, 32, "a Shopify token"),
    format("shpss_", hex, 32, "a Shopify secret"),
    format("sntryu_", hex, 64, "a Sentry token"),
    format("sntrys_", base64url, 80, "a Sentry token"),
    format("sbp_", hex, 40, "a Supabase token"),
    format("sb_secret_", base64url, 20, "a Supabase key"),
    format("apify_api_", alphanumeric, 36, "an Apify token"),
    format("tskey-", base64url, 20, "a Tailscale key"),
    format("ATATT3", |byte| base64url(byte) || byte == b'=', 180, "an Atlassian token"),
    format("ATCTT3", |byte| base64url(byte) || byte == b'=', 180, "an Atlassian token"),
    format("ATBB", alphanumeric, 32, "a Bitbucket password"),
    format("AGE-SECRET-KEY-1", alphanumeric, 58, "an age key"),
    // Bech32 and base58 of wallets and of Nostr: an alphabet and lengths that nothing else has.
    format("nsec1", alphanumeric, 58, "a Nostr key"),
    format("xprv", alphanumeric, 100, "the key of a wallet"),
];
