//! A normalised definition is a definition that means the same.

use super::*;

/// A small generator (xorshift64*), so that a failing seed can be run again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % end
    }

    fn one_of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn texts(&mut self, from: &[&str]) -> Vec<Value> {
        let count = self.below(4);
        (0..count).map(|_| self.one_of(from).into()).collect()
    }

    fn definition(&mut self, platform: Platform) -> Value {
        let paths: &[&str] = match platform {
            Platform::Posix => &["/", "/usr/bin/node", "/a b/日本"],
            Platform::Windows => &["C:\\node.exe", "c:/x", "\\\\server\\share\\x"],
        };
        let mut json = Map::new();
        if self.below(2) == 0 {
            let names = ["include", "exclude"];
            let count = self.below(3);
            let lists =
                (0..count).map(|at| (names[at].to_owned(), self.texts(&["read", "write", "", "é"]).into()));
            json.insert("tools".into(), Value::Object(lists.collect()));
        }
        if self.below(2) == 0 {
            json.insert("cwd".into(), self.one_of(paths).into());
        }
        if self.below(2) == 0 {
            json.insert("timeout".into(), (1_000 + self.below(299_001)).into());
        }
        if self.below(2) == 0 {
            json.insert("inheritEnvironment".into(), self.texts(&["BRIDGE", "OTHER"]).into());
        }
        if self.below(2) == 0 {
            let values = ["", "x", "日本", "a\nb", "\"\\", "\u{1F600}", "()"];
            let names = ["A", "_", "MODE", "Path", "constructor"];
            let count = self.below(names.len());
            let environment = (0..count).map(|at| (names[at].to_owned(), self.one_of(&values).into()));
            json.insert("environment".into(), Value::Object(environment.collect()));
        }
        let mut command = vec![self.one_of(paths).into()];
        command.extend(self.texts(&["", "-x", "a b", "ü", "a\nb", "a=b"]));
        json.insert("command".into(), command.into());
        json.insert("id".into(), self.one_of(&["a", "a-1", "project-tools"]).into());
        Value::Object(json)
    }
}

#[test]
fn normalising_again_gives_the_same() {
    for platform in [Platform::Posix, Platform::Windows] {
        for seed in 1..=500 {
            let written = Dice(seed * 0x9E37_79B9).definition(platform);
            let once = judge_one(&(&written).into(), &options(), platform).unwrap();
            let text = once.to_json().to_string();
            let read: Value = serde_json::from_str(&text).unwrap();
            let twice = judge_one(&(&read).into(), &options(), platform).unwrap();
            assert_eq!(once, twice, "seed {seed}: {written}");
            assert_eq!(text, twice.to_json().to_string(), "seed {seed}: {written}");
        }
    }
}
