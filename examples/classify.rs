//! Recall and false positives of the name rules on labelled files: `npm run classify -- <tsv>…`.
//!
//! A file has a heading and lines of `name`, tab, `1` (capability) or `0`; further columns are ignored. For each file, and for all
//! together:
//!
//! - the misses, and the figures with their 95 % intervals (Clopper-Pearson, which keeps its promise for few names, too)
//! - the same from five held-out folds. The rules have no numbers to fit; what they could have learnt from a sample is words. So
//!   each fifth is judged without the words that stand in it and in no name of the other four, as if nobody had seen it. That
//!   is harder than what it measures: who writes rules knows `cookie` from elsewhere. Folds are dealt out by a hash of the name,
//!   each label by itself.
#![expect(clippy::print_stdout, reason = "a command line program")]

use std::collections::HashSet;
use std::error::Error;
use workflow_mcp::policy::capability::Vocabulary;

const FOLDS: usize = 5;

struct Labelled {
    name: String,
    is_capability: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        return Err("usage: npm run classify -- <tsv>…".into());
    }
    let mut all = Vec::new();
    for file in &files {
        let text =
            std::fs::read_to_string(file).map_err(|error| format!("{file} cannot be read: {error}"))?;
        let labelled = parsed(&text).map_err(|fault| format!("{file}: {fault}"))?;
        report(file, &labelled);
        all.extend(labelled);
    }
    if files.len() > 1 {
        report("together", &all);
    }
    Ok(())
}

fn parsed(text: &str) -> Result<Vec<Labelled>, String> {
    let mut labelled = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let mut columns = line.trim_end().split('\t');
        let name = columns.next().unwrap_or_default().to_owned();
        let is_capability = match columns.next() {
            Some("1") => true,
            Some("0") => false,
            _ => return Err(format!("line {} is not a name, a tab and 0 or 1", index + 1)),
        };
        labelled.push(Labelled { name, is_capability });
    }
    if labelled.is_empty() { Err("there are no names in it".to_owned()) } else { Ok(labelled) }
}

fn report(file: &str, labelled: &[Labelled]) {
    println!("{file}: {} names", labelled.len());
    let vocabulary = Vocabulary::default();
    let mut all = Tally::default();
    for each in labelled {
        let found = vocabulary.finds_capability(&each.name);
        all.count(each, found);
        if found != each.is_capability {
            println!("  {}  {}", if found { "false positive" } else { "missed        " }, each.name);
        }
    }
    all.print("recall", "false positives");

    let folds = folds(labelled);
    let mut held_out = Tally::default();
    for fold in &folds {
        let others = folds.iter().filter(|other| !std::ptr::eq(*other, fold)).flatten();
        let known = words_of(others, &vocabulary);
        let unseen = words_of(fold, &vocabulary).difference(&known).cloned().collect();
        let vocabulary = Vocabulary::without(unseen);
        for each in fold {
            held_out.count(each, vocabulary.finds_capability(&each.name));
        }
    }
    held_out.print("recall, held out", "false positives, held out");
    println!();
}

fn words_of<'a>(
    names: impl IntoIterator<Item = &'a &'a Labelled>,
    vocabulary: &Vocabulary,
) -> HashSet<String> {
    names.into_iter().flat_map(|each| vocabulary.words_of(&each.name)).collect()
}

/// Five parts with the same share of capabilities.
fn folds(labelled: &[Labelled]) -> [Vec<&Labelled>; FOLDS] {
    let mut shuffled: Vec<&Labelled> = labelled.iter().collect();
    shuffled.sort_by_key(|each| (each.is_capability, hash(&each.name)));
    let mut folds: [Vec<&Labelled>; FOLDS] = Default::default();
    for (index, each) in shuffled.into_iter().enumerate() {
        folds[index % FOLDS].push(each);
    }
    folds
}

/// FNV-1a: the same folds on every machine and for every release of the compiler.
fn hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[derive(Default)]
struct Tally {
    found: u32,
    capabilities: u32,
    refused: u32,
    ordinary: u32,
}

impl Tally {
    fn count(&mut self, each: &Labelled, found: bool) {
        let (of, hits) = if each.is_capability {
            (&mut self.capabilities, &mut self.found)
        } else {
            (&mut self.ordinary, &mut self.refused)
        };
        *of += 1;
        *hits += u32::from(found);
    }

    fn print(&self, recall: &str, false_positives: &str) {
        println!("  {recall:<26}{}", share(self.found, self.capabilities));
        println!("  {false_positives:<26}{}", share(self.refused, self.ordinary));
    }
}

fn share(hits: u32, of: u32) -> String {
    if of == 0 {
        return "(none)".to_owned();
    }
    let (low, high) = interval(hits, of);
    format!("{hits}/{of} = {:.4} (95 %: {low:.4} to {high:.4})", f64::from(hits) / f64::from(of))
}

/// Clopper and Pearson: the shares for which this many hits or fewer, and this many or more, are each 2.5 % likely.
fn interval(hits: u32, of: u32) -> (f64, f64) {
    const TAIL: f64 = 0.025;
    let low = if hits == 0 { 0.0 } else { bisected(|share| 1.0 - at_most(hits - 1, of, share) < TAIL) };
    let high = if hits == of { 1.0 } else { bisected(|share| at_most(hits, of, share) > TAIL) };
    (low, high)
}

/// Where a condition that holds from 0 up stops to hold.
fn bisected(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// The probability of `hits` or fewer out of `of`.
fn at_most(hits: u32, of: u32, share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return f64::from(u8::from(share <= 0.0 || hits >= of));
    }
    // In logarithms: the first terms are far below what a double can hold.
    let mut term = f64::from(of) * (1.0 - share).ln();
    let mut sum = term.exp();
    for hit in 0..hits {
        term += (f64::from(of - hit) / f64::from(hit + 1)).ln() + (share / (1.0 - share)).ln();
        sum += term.exp();
    }
    sum.min(1.0)
}
