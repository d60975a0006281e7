//! A page of the manual: its fenced blocks, and what the comments in front of them say.

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// The line of its fence, from 1.
    pub line: usize,
    pub language: String,
    pub text: String,
    pub how: How,
    /// The exit code of its last command.
    pub exit: i32,
}

/// What is done with a block.
#[derive(Debug, Clone, PartialEq)]
pub enum How {
    Run,
    NotRun(String),
    AtTerminal(Vec<Step>),
    /// Left running once it has printed this.
    InBackground(String),
    File(String),
}

/// What a user does at a terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Expect(String),
    Send(String),
    Type(String),
    Stable,
}

impl Block {
    /// Whether it shows commands, whether they are run or not.
    pub fn is_commands(&self) -> bool {
        matches!(self.language.as_str(), "sh" | "console")
    }

    /// Why it is not run.
    pub fn reason(&self) -> Option<&str> {
        match &self.how {
            How::NotRun(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Returns the blocks of a page that are commands or files.
///
/// # Errors
/// With line and fault: a comment that is not understood, or a block without a language.
pub fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut next = (How::Run, 0);
    let mut lines = text.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("<!-- ") {
            let mut comment = comment.to_owned();
            while !comment.ends_with("-->") {
                let (_, line) = lines.next().ok_or_else(|| format!("{}: a comment without an end", n + 1))?;
                comment = format!("{comment}\n{line}");
            }
            match directive(comment.trim_end_matches("-->"), &mut next) {
                Some(setup) if !setup.is_empty() => found.push(Block {
                    line: n + 1,
                    language: "setup".to_owned(),
                    text: setup,
                    how: How::Run,
                    exit: 0,
                }),
                Some(_) => {}
                None => return Err(format!("{}: a comment that is not understood", n + 1)),
            }
        } else if let Some(language) = line.strip_prefix("```") {
            if language.is_empty() {
                return Err(format!("{}: a block without a language", n + 1));
            }
            let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
            let inside = inside.map(|line| line.get(indent..).unwrap_or_default());
            let text = inside.map(|line| format!("{line}\n")).collect();
            let (how, exit) = std::mem::replace(&mut next, (How::Run, 0));
            let block = Block { line: n + 1, language: language.to_owned(), text, how, exit };
            if block.is_commands() || matches!(block.how, How::File(_)) {
                found.push(block);
            }
        } else if !line.is_empty() && next != (How::Run, 0) {
            return Err(format!("{}: a comment for a block that does not follow", n + 1));
        }
    }
    Ok(found)
}

/// Takes a comment. Returns the commands of a `setup`, nothing for other directives and for
/// comments that other tools read, and `None` for what none of them understands.
fn directive(comment: &str, next: &mut (How, i32)) -> Option<String> {
    let comment = comment.trim();
    let (first, rest) = comment.split_once('\n').unwrap_or((comment, ""));
    if let Some(reason) = first.strip_prefix("not run: ") {
        next.0 = How::NotRun(reason.trim().to_owned());
    } else if let Some(code) = first.strip_prefix("exits with ") {
        next.1 = code.trim().parse().ok()?;
    } else if first == "at a terminal" {
        next.0 = How::AtTerminal(rest.lines().map(step).collect::<Option<_>>()?);
    } else if let Some(until) = first.strip_prefix("in the background") {
        let text = until.strip_prefix(" until ").unwrap_or_default();
        next.0 = How::InBackground(text.trim().to_owned());
    } else if let Some(name) = first.strip_prefix("file ") {
        next.0 = How::File(name.trim().to_owned());
    } else if first == "setup" {
        return Some(format!("{rest}\n"));
    } else if !["begin", "end", "generated"].iter().any(|word| first.contains(word)) {
        return None;
    }
    Some(String::new())
}

fn step(line: &str) -> Option<Step> {
    let (verb, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let rest = rest.to_owned();
    match verb {
        "expect" => Some(Step::Expect(rest)),
        "send" => Some(Step::Send(rest)),
        "type" => Some(Step::Type(rest)),
        "stable" => Some(Step::Stable),
        _ => None,
    }
}

/// The commands of a `console` block, each with what it prints.
pub fn commands(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let typed = line.strip_prefix("$ ").map(|line| (line, false));
        let typed = typed.or_else(|| goes_on.then(|| (line.strip_prefix("> ").unwrap_or(line), true)));
        match (typed, found.last_mut()) {
            (Some((line, false)), _) => found.push((line.to_owned(), String::new())),
            (Some((line, true)), Some((command, _))) => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some((_, output))) => {
                output.push_str(line);
                output.push('\n');
            }
            _ => {}
        }
        goes_on = typed.is_some_and(|(line, _)| line.ends_with('\\'));
    }
    found
}

/// The commands of a block of either kind.
pub fn commands_or_script(text: &str) -> Vec<String> {
    let found = commands(text);
    if found.is_empty() {
        vec![text.to_owned()]
    } else {
        found.into_iter().map(|(command, _)| command).collect()
    }
}

/// The code spans of a page outside of blocks, with their lines.
pub fn spans(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (n, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.map(|span| (n + 1, span.to_owned())));
        }
    }
    found
}

/// The command of a span such as `tapdeck rec --append`, at most two words, and its long options.
pub fn options(span: &str) -> Option<(String, Vec<String>)> {
    let span = span.split(" -- ").next().unwrap_or_default();
    let words: Vec<&str> = span.strip_prefix("tapdeck ").unwrap_or(span).split_whitespace().collect();
    let is_name =
        |word: &&&str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !word.starts_with('-');
    let command: Vec<&str> = words.iter().take_while(is_name).take(2).copied().collect();
    let options = words.iter().filter(|word| word.len() > 2 && word.starts_with("--"));
    let options = options.map(|word| word.split(['=', '[', ',']).next().unwrap_or(word).to_owned());
    (!command.is_empty()).then(|| (command.join(" "), options.collect()))
}

/// Whether what was printed is what the page shows: `…` is any text, alone on a line any lines.
pub fn matches(wanted: &str, printed: &str) -> bool {
    let wanted: Vec<&str> = wanted.trim_end().lines().map(str::trim_end).collect();
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    matches_lines(&wanted, &printed)
}

fn matches_lines(wanted: &[&str], printed: &[&str]) -> bool {
    match wanted {
        [] => printed.is_empty(),
        ["…", rest @ ..] => (0..=printed.len()).any(|n| matches_lines(rest, &printed[n..])),
        [line, rest @ ..] => {
            printed.first().is_some_and(|first| matches_line(line, first))
                && matches_lines(rest, &printed[1..])
        }
    }
}

fn matches_line(wanted: &str, printed: &str) -> bool {
    let Some((before, after)) = wanted.split_once('…') else { return wanted == printed };
    let Some(rest) = printed.strip_prefix(before) else { return false };
    let places = (0..=rest.len()).filter(|n| rest.is_char_boundary(*n));
    places.into_iter().any(|n| matches_line(after, &rest[n..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_left_open() {
        for (wanted, printed) in [
            ("", "\n"),
            ("one\ntwo\n", "one  \ntwo"),
            ("a … c\n", "a b c\n"),
            ("one\n…\nfour\n", "one\ntwo\nthree\nfour\n"),
            ("one\n…\n", "one\n"),
        ] {
            assert!(matches(wanted, printed), "{wanted:?} {printed:?}");
        }
        for (wanted, printed) in [("", "one"), ("one", ""), ("a … c", "a b d"), ("…\nfour", "three")] {
            assert!(!matches(wanted, printed), "{wanted:?} {printed:?}");
        }
    }

    #[test]
    fn comments_say_how_a_block_is_run() {
        let page = "<!-- exits with 3 -->\n\n```console\n$ false \\\n> or not\nout\n```\n\
                    <!-- not run: it takes a day -->\n```sh\nsleep 1d\n```\n\
                    <!-- at a terminal\nexpect a b\nsend q\n-->\n```sh\nless\n```\n```toml\nx = 1\n```\n";
        let blocks = blocks(page).expect("a page");
        let [transcript, skipped, terminal] = &blocks[..] else { panic!("{blocks:?}") };
        assert_eq!((transcript.exit, transcript.line), (3, 3));
        assert_eq!(commands(&transcript.text), [("false \\\nor not".to_owned(), "out\n".to_owned())]);
        assert_eq!(skipped.reason(), Some("it takes a day"));
        let steps = vec![Step::Expect("a b".to_owned()), Step::Send("q".to_owned())];
        assert_eq!(terminal.how, How::AtTerminal(steps));
        assert!(super::blocks("<!-- not run: why -->\ntext\n").is_err());
        assert!(super::blocks("<!-- nonsense -->\n").is_err());
    }
}
