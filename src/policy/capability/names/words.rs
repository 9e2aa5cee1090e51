//! A name, taken apart into its words.

use super::Vocabulary;
use super::lexicon::{KEY_STEMS, PASS_STEMS, SUFFIXES, TRAILERS};

/// The words of a name, in lower case, without numbers.
pub(super) fn words(name: &str, vocabulary: &Vocabulary) -> Vec<String> {
    let mut words = Vec::new();
    for piece in name.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let mut start = 0;
        for end in 1..=piece.len() {
            if end == piece.len() || is_hump(piece.as_bytes(), end) {
                let word = piece.get(start..end).unwrap_or_default().to_ascii_lowercase();
                take_apart(&word, vocabulary, &mut words);
                start = end;
            }
        }
    }
    words
}

/// `apiKey` and `base64Key` break before `K`, `APIKey` too; `NEO4J` and `I18N` are one word.
fn is_hump(piece: &[u8], at: usize) -> bool {
    let (before, here) = (piece[at - 1], piece[at]);
    here.is_ascii_uppercase()
        && (before.is_ascii_lowercase() || piece.get(at + 1).is_some_and(u8::is_ascii_lowercase))
}

fn take_apart(word: &str, vocabulary: &Vocabulary, words: &mut Vec<String>) {
    // Longer runs of letters are no words; the limit bounds the recursion.
    const LONGEST: usize = 64;
    if vocabulary.lists(TRAILERS, word) {
        words.push(word.to_owned());
        return;
    }
    let word = without_number(word);
    if let Some((stem, noun)) = compound(word, vocabulary).filter(|_| word.len() <= LONGEST) {
        take_apart(stem, vocabulary, words);
        // `apikey` is a suffix because its stem may be anything; as words it is a pair like any other.
        if let Some((kind, key)) =
            noun.rfind("key").map(|at| noun.split_at(at)).filter(|(kind, _)| !kind.is_empty())
        {
            words.push(kind.to_owned());
            words.push(key.to_owned());
        } else {
            words.push(noun.to_owned());
        }
    } else if !word.is_empty() {
        words.push(word.to_owned());
    }
}

fn without_number(word: &str) -> &str {
    word.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

fn compound<'w>(word: &'w str, vocabulary: &Vocabulary) -> Option<(&'w str, &'w str)> {
    let cut = |noun: &str| word.strip_suffix(noun).map(|stem| word.split_at(stem.len()));
    let cut_after = |stems, noun| cut(noun).filter(|(stem, _)| vocabulary.lists(stems, without_number(stem)));
    SUFFIXES
        .split_ascii_whitespace()
        .filter(|noun| vocabulary.knows(noun))
        .find_map(cut)
        .filter(|(stem, noun)| !stem.is_empty() || noun.contains("key"))
        .or_else(|| cut_after(KEY_STEMS, "key"))
        .or_else(|| cut_after(PASS_STEMS, "pass"))
        .or_else(|| cut_after(PASS_STEMS, "pwd"))
}
