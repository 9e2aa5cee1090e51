//! Which known name a wrong one resembles.

/// Longer names are not compared: the table of one comparison grows with the square of the length, and names come from servers too.
const LONGEST: usize = 128;

/// The known name that a slip of the keyboard, the wrong case or an abbreviation made `name` of; none when nothing is near.
///
/// Near is at most one edit for every three characters of the longer name. An edit inserts, deletes or replaces
/// a character, or swaps two neighbours. Where no name is near, the first one that begins with `name` (three characters
/// or more) counts: `env` means `environment`. Of equals the first wins.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = folded(name)?;
    let mut best: Option<(usize, &'a str)> = None;
    let mut begun = None;
    for candidate in known {
        let Some(letters) = folded(candidate) else { continue };
        let allowed = name.len().max(letters.len()).max(3) / 3;
        let limit = best.map_or(allowed, |(distance, _)| allowed.min(distance.saturating_sub(1)));
        if best.is_none_or(|(distance, _)| distance > 0) && name.len().abs_diff(letters.len()) <= limit {
            let distance = distance(&name, &letters);
            if distance <= limit {
                best = Some((distance, candidate));
            }
        }
        if begun.is_none() && name.len() >= 3 && letters.starts_with(&name) {
            begun = Some(candidate);
        }
    }
    best.map(|(_, candidate)| candidate).or(begun)
}

fn folded(name: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = name.chars().flat_map(char::to_lowercase).take(LONGEST + 1).collect();
    (letters.len() <= LONGEST).then_some(letters)
}

/// Optimal string alignment: edit distance in which two swapped neighbours count once.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut two_above = vec![0; right.len() + 1];
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut row = above.clone();
    for (i, letter) in left.iter().enumerate() {
        row[0] = i + 1;
        for (j, other) in right.iter().enumerate() {
            let replaced = above[j] + usize::from(letter != other);
            row[j + 1] = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == right[j - 1] && left[i - 1] == *other {
                row[j + 1] = row[j + 1].min(two_above[j - 1] + 1);
            }
        }
        std::mem::swap(&mut two_above, &mut above);
        std::mem::swap(&mut above, &mut row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 7] =
        ["id", "command", "environment", "inheritEnvironment", "timeout", "cwd", "tools"];

    #[test]
    fn slips_of_the_keyboard_are_near() {
        for (slip, meant) in [
            ("comand", "command"),
            ("commnad", "command"),
            ("Timeout", "timeout"),
            ("TIMEOUT", "timeout"),
            ("timeouts", "timeout"),
            ("enviroment", "environment"),
            ("inherit_environment", "inheritEnvironment"),
            ("inheritEnviroment", "inheritEnvironment"),
            ("tool", "tools"),
            ("ID", "id"),
            ("di", "id"),
            ("cdw", "cwd"),
        ] {
            assert_eq!(nearest(slip, KNOWN), Some(meant), "{slip}");
        }
    }

    #[test]
    fn the_beginning_of_a_name_is_near() {
        assert_eq!(nearest("env", KNOWN), Some("environment"));
        assert_eq!(nearest("inherit", KNOWN), Some("inheritEnvironment"));
        assert_eq!(nearest("en", KNOWN), None);
    }

    #[test]
    fn other_words_are_not_near() {
        for other in ["", "args", "url", "__proto__", "headers", "x", "disabled"] {
            assert_eq!(nearest(other, KNOWN), None, "{other}");
        }
        assert_eq!(nearest("command", []), None);
    }

    #[test]
    fn the_closest_wins_and_of_equals_the_first() {
        assert_eq!(nearest("read_file", ["read_files", "read_file2", "Read_File"]), Some("Read_File"));
        assert_eq!(nearest("lost_file", ["list_file", "last_file"]), Some("list_file"));
        assert_eq!(nearest("reads", ["head", "readd", "reads"]), Some("reads"));
    }

    #[test]
    fn very_long_names_are_left_alone() {
        let long = "a".repeat(1 << 20);
        assert_eq!(nearest(&long, ["a"]), None);
        assert_eq!(nearest("command", [long.as_str(), "comand"]), Some("comand"));
    }

    #[test]
    fn swapping_neighbours_is_one_edit() {
        let distance = |left: &str, right: &str| {
            distance(&left.chars().collect::<Vec<_>>(), &right.chars().collect::<Vec<_>>())
        };
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("abcd", "acbd"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("été", "ete"), 2);
    }
}
