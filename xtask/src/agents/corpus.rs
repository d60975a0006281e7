//! The prompts: a list of nasty ones, and generated ones of every kind.

/// Names and texts of the prompts: the list first, then generated ones up to `count`.
pub(super) fn corpus(count: usize, seed: u64) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = nasty().into_iter().map(|(n, t)| (n.to_owned(), t)).collect();
    if count < all.len() {
        // A short run has some of each kind.
        let step = all.len() / count.max(1);
        return all.into_iter().step_by(step.max(1)).take(count).collect();
    }
    let mut random = Random(seed | 1);
    for i in all.len()..count {
        let (kind, text) = generated(&mut random);
        all.push((format!("{kind} {i}"), text));
    }
    all
}

fn nasty() -> Vec<(&'static str, String)> {
    let lines = |n: usize| (1..=n).map(|i| format!("line {i} of {n}")).collect::<Vec<_>>().join("\n");
    let texts: &[(&str, &str)] = &[
        ("plain", "What is the capital of France?"),
        ("empty", ""),
        ("hi", "hi"),
        ("blank", "   "),
        ("y", "y"),
        ("line ends only", "\n\n"),
        ("do", "do"),
        ("trailing backslash", "continue on the next line \\"),
        ("question mark", "?"),
        ("leading at", "@README.md what is this"),
        ("Hindi", "नमस्ते दुनिया, आप कैसे हैं?"),
        ("unknown command", "/nonsense"),
        ("decomposed accents", "cafe\u{301} re\u{301}sume\u{301} A\u{30a}ngstro\u{308}m"),
        ("shell escape", "!echo hello from the shell"),
        ("zero-width characters", "zero\u{200b}width\u{200c}and\u{200d}joiners\u{2060}here\u{feff}"),
        ("hash", "# remember this"),
        ("emoji sequences", "family 👨\u{200d}👩\u{200d}👧\u{200d}👦 flag 🏳\u{fe0f}\u{200d}🌈 thumbs 👍🏽"),
        ("at alone", "@"),
        ("right to left", "שלום עולם, مرحبا بالعالم"),
        ("slash alone", "/"),
        ("tabs", "\tif x:\n\t\treturn\ty"),
        ("bang alone", "!"),
        ("trailing blanks", "trailing blanks   "),
        ("hash alone", "#"),
        ("CRLF", "first\r\nsecond\r\nthird"),
        ("ends with at", "look at @"),
        ("leading blanks", "    four blanks in front"),
        ("ends with a command", "explain what /help"),
        ("quotes", "it's \"quoted\" and `ticked` and $HOME and $(id) and \\n"),
        ("command with arguments", "/nonsense with arguments"),
        ("control characters", "bell \u{7} escape \u{1b}[31mred\u{1b}[m back\u{8}space \u{3} end"),
        ("path in front", "/usr/bin/env is a program"),
        ("backslashes", "C:\\Users\\me\\file.txt \\\\ and \\"),
        ("number", "1"),
        ("placeholder of Codex", "Improve documentation in @filename"),
        ("placeholder words", "Find and fix a bug in @filename"),
        ("placeholder of Claude", "Try \"edit <filepath> to...\""),
        ("shortcuts row", "? for shortcuts"),
        ("words of work", "press esc to interrupt"),
        ("words of a dialog", "Do you want to proceed?\n❯ 1. Yes\n  2. No"),
        ("prompt mark", "❯ hello"),
        ("prompt mark of Codex", "› hello"),
        ("greater than", "> quoted text"),
        ("pasted text", "[Pasted text #1 +10 lines]"),
        ("pasted content", "[Pasted Content 1200 chars]"),
        ("box", "╭────╮\n│ hi │\n╰────╯"),
        ("rule", "────────────────────────────────────────"),
        ("Chinese", "你好，世界。请解释这个函数。"),
        ("Japanese", "こんにちは、ﾊﾝｶｸ ｶﾀｶﾅ と 全角"),
        ("Korean decomposed", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} 한글"),
        ("Thai", "สวัสดีชาวโลก ภาษาไทย"),
        ("Tamil", "வணக்கம் உலகம்"),
        ("no-break space", "no\u{a0}break\u{202f}space"),
        ("line separator", "one\u{2028}two\u{2029}three"),
        ("soft hyphen", "soft\u{ad}hyphen"),
        ("direction marks", "a\u{200e}b\u{200f}c\u{202e}d\u{202c}e"),
        ("combining only", "\u{301}\u{302}"),
        ("zero-width only", "\u{200b}\u{200b}"),
        ("variation selectors", "heart ❤\u{fe0f} and ❤\u{fe0e}"),
        ("private use", "icon \u{e0b0} \u{f8ff}"),
        ("astral", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𓀀 🂡"),
        ("keycaps", "1\u{fe0f}\u{20e3} 2\u{fe0f}\u{20e3}"),
        ("two lines", "first line\nsecond line"),
        ("blank line inside", "first\n\n\nfourth"),
        ("trailing line end", "ends with a line end\n"),
        ("leading line end", "\nbegins with a line end"),
        ("backslash inside", "a \\\nb"),
        ("code", "fn main() {\n    println!(\"{}\", 1);\n}"),
        ("diff", "-old\n+new\n @@ -1 +1 @@"),
        ("markdown", "# Title\n\n- a\n- b\n\n```sh\nls\n```"),
        ("JSON", "{\"a\": [1, 2, {\"b\": null}]}"),
        ("exit", "exit"),
        ("quit", "quit"),
        ("yes", "yes"),
        ("dot", "."),
        ("colon command", ":q!"),
        ("ampersand", "& run this"),
        ("dollar", "$ ls -la"),
        ("the same", "What is the capital of France?"),
        ("the same again", "What is the capital of France?"),
        ("the answer", "I only know a few things by heart."),
    ];
    let mut all: Vec<(&str, String)> = texts.iter().map(|(n, t)| (*n, (*t).to_owned())).collect();
    all.push(("200 lines", lines(200)));
    all.push(("20 lines", lines(20)));
    all.push(("9 lines", lines(9)));
    all.push(("long line", format!("a long line: {}end", "and on ".repeat(700))));
    all.push(("long word", format!("a long word: {}", "x".repeat(3000))));
    all.push(("as wide as the screen", "w".repeat(98)));
    all.push(("900 characters", format!("{}.", "nine hundred ".repeat(69))));
    all.push(("100 KB", format!("{}\nend", lines(5000))));
    all
}

/// A sequence of numbers that is the same for the same seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % n as u64).unwrap_or_default()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const WORDS: [&str; 24] = [
    "fix",
    "the",
    "test",
    "in",
    "src/main.rs",
    "please",
    "explain",
    "why",
    "it",
    "fails",
    "grüße",
    "漢字",
    "🙂",
    "naïve",
    "cafe\u{301}",
    "हिन्दी",
    "x=1;",
    "`code`",
    "\"quoted\"",
    "don't",
    "a\u{200b}b",
    "👩\u{200d}💻",
    "עברית",
    "50%",
];
const LEADS: [&str; 12] = ["", "", "", "", "> ", "- ", "1. ", "? ", "* ", "= ", "~ ", "… "];
const ENDS: [&str; 10] = ["", "", "", ".", "?", "!", " ", "\n", ":", ";"];

fn generated(random: &mut Random) -> (&'static str, String) {
    let sentence = |random: &mut Random, most: usize| {
        let words: Vec<&str> = (0..=random.below(most)).map(|_| random.one(&WORDS)).collect();
        words.join(" ")
    };
    let (kind, body) = match random.below(6) {
        0 => ("word", random.one(&WORDS).to_owned()),
        1 => ("sentence", sentence(random, 12)),
        2 => ("long", sentence(random, 200)),
        3 => {
            let lines: Vec<String> = (0..=random.below(40)).map(|_| sentence(random, 12)).collect();
            ("lines", lines.join("\n"))
        }
        4 => {
            let lines: Vec<String> =
                (0..=random.below(8)).map(|_| " ".repeat(random.below(8)) + &sentence(random, 6)).collect();
            ("indented", format!("code:\n{}", lines.join("\n")))
        }
        _ => {
            // Any characters that can be typed.
            let ranges =
                [(0x21, 0x5e), (0xa1, 0x2ff), (0x400, 0xff), (0x900, 0x70), (0x3041, 0x50), (0x1f600, 0x40)];
            let text = (0..=random.below(40)).filter_map(|_| {
                let (from, len) = ranges[random.below(ranges.len())];
                char::from_u32(from + u32::try_from(random.below(len)).unwrap_or_default())
            });
            ("characters", format!("t{}", text.collect::<String>()))
        }
    };
    (kind, format!("{}{body}{}", random.one(&LEADS), random.one(&ENDS)))
}
