//! Recall and false positives of the name rules on a labelled file: `cargo run --no-default-features --example classify -- <tsv>`.
//!
//! The file has a heading and lines of `name`, tab, `1` (capability) or `0`; further columns are ignored.
#![expect(clippy::print_stdout, reason = "a command line program")]

use std::process::ExitCode;
use workflow_mcp::policy::capability::name_is_capability;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: classify <tsv>")?;
    let text = std::fs::read_to_string(file)?;
    let (mut found, mut secret, mut refused, mut ordinary) = (0, 0, 0, 0);
    for line in text.lines().skip(1) {
        let mut columns = line.split('\t');
        let (Some(name), Some(label)) = (columns.next(), columns.next()) else { continue };
        let judged = name_is_capability(name);
        if label == "1" {
            secret += 1;
            found += u32::from(judged);
        } else {
            ordinary += 1;
            refused += u32::from(judged);
        }
        if judged != (label == "1") {
            println!("{} {name}", if judged { "false positive" } else { "missed        " });
        }
    }
    println!("recall          {found}/{secret} {}", interval(found, secret));
    println!("false positives {refused}/{ordinary} {}", interval(refused, ordinary));
    Ok(ExitCode::SUCCESS)
}

/// The share, with its 95 % Wilson interval.
fn interval(hits: u32, of: u32) -> String {
    if of == 0 {
        return "(none)".to_owned();
    }
    let (hits, of, z) = (f64::from(hits), f64::from(of), 1.96_f64);
    let share = hits / of;
    let scale = 1.0 + z * z / of;
    let middle = (share + z * z / (2.0 * of)) / scale;
    let half = z / scale * (share * (1.0 - share) / of + z * z / (4.0 * of * of)).sqrt();
    format!("= {share:.4} (95 %: {:.4} to {:.4})", (middle - half).max(0.0), (middle + half).min(1.0))
}
