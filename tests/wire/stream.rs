//! Random lines that are almost messages.

/// A generator of the splitmix kind: the seed of a failure is all there is to know of it.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// An object with the members that matter, in any order, twice or not at all, and others.
pub(crate) fn object(random: &mut Random, depth: usize, line: &mut Vec<u8>) {
    const KEYS: [&str; 10] =
        ["id", "id", "result", "result", "method", "error", "params", "jsonrpc", "\\u0069d", "ident"];
    line.push(b'{');
    for member in 0..random.below(5) {
        if member > 0 {
            line.push(b',');
        }
        line.extend(format!("\"{}\"", KEYS[random.below(KEYS.len())]).bytes());
        line.extend(if random.below(4) == 0 { " : " } else { ":" }.bytes());
        value(random, depth + 1, line);
    }
    line.push(b'}');
}

fn value(random: &mut Random, depth: usize, line: &mut Vec<u8>) {
    const PLAIN: [&str; 15] = [
        "7",
        "7.0",
        "-1",
        "1e400",
        "\"7\"",
        "null",
        "true",
        "\"m\"",
        "\"\"",
        "{}",
        "[]",
        "\"\\\"id\\\":8,\"",
        "\"\u{1f600}\"",
        "\"\\ud83d\"",
        "\"\\\\\"",
    ];
    match random.below(8) {
        0 if depth < 4 => object(random, depth, line),
        1 if depth < 4 => {
            line.push(b'[');
            object(random, depth, line);
            line.push(b',');
            value(random, depth + 1, line);
            line.push(b']');
        }
        2 => line.extend(format!("\"{}\"", "x".repeat(random.below(300))).bytes()),
        _ => line.extend(PLAIN[random.below(PLAIN.len())].bytes()),
    }
}

/// Now and then something is wrong with a line, and now and then it is several or none.
pub(crate) fn damage(random: &mut Random, line: &mut Vec<u8>) {
    const PIECES: [&[u8]; 10] = [b"{", b"}", b"[", b"]", b",", b"\"", b"\n", b"\xff", b"\xef\xbb\xbf", b"\\"];
    match random.below(6) {
        0 => {
            let at = random.below(line.len() + 1);
            line.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied());
        }
        1 => {
            line.insert(0, b'[');
            line.push(b']');
        }
        2 => line.push(b'\r'),
        _ => {}
    }
}
