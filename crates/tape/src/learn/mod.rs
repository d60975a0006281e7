//! Learns the rules of an agent from looks at its screen: its prompt or its input field, and what
//! shows that it is at work. A person corrects what comes out.

mod prompt;
mod screen;

use std::time::Duration;

/// A look at a program's screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The rows as text.
    pub rows: Vec<String>,
    /// The cursor's row.
    pub cursor_row: usize,
    /// The cursor's column.
    pub cursor_col: usize,
    /// Whether it is the alternate screen.
    pub alternate: bool,
    /// The window's title.
    pub title: String,
    /// How long the program had written nothing.
    pub quiet: Duration,
    /// Whether it had asked for bracketed paste.
    pub pastes: bool,
}

/// What was learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// The rule file.
    pub rules: String,
    /// What was seen, as sentences.
    pub found: Vec<String>,
    /// What was not seen, as sentences.
    pub missing: Vec<String>,
}

/// A screen that has not changed for this long is one of a program that waits; one that has changed
/// within this time is one of a program at work.
const AT_REST: Duration = Duration::from_millis(1500);
const AT_WORK: Duration = Duration::from_millis(400);

/// Learns the rules of a program from looks at it, in the order of time. `None` if it was never at
/// rest, so that nothing can be said.
///
/// A program that prints its prompt in front of the cursor and repeats it above each answer has
/// turns from prompt to prompt. Any other program draws an input field, and its turns begin and
/// end with its state.
pub fn learn(name: &str, command: &str, samples: &[Sample]) -> Option<Learned> {
    // The last look of each time that it was at rest.
    let runs = samples.chunk_by(|a, b| (a.quiet >= AT_REST) == (b.quiet >= AT_REST));
    let rests: Vec<&Sample> = runs.filter_map(|run| run.last()).filter(|s| s.quiet >= AT_REST).collect();
    if rests.is_empty() {
        return None;
    }
    let head = format!(
        "# Learned by looking at {command}. Check it, and correct it where it is wrong.\n\
         name = {name:?}\n\n[turns]\ncommands = [{command:?}]\n"
    );
    let of_prompt = |text: &str| head.clone() + &prompt::rules(text);
    let seen = prompt::learn(&rests);
    if let prompt::Seen::Prompt(text) = seen {
        let found = vec![format!("it shows the prompt {text:?} in front of the cursor")];
        return Some(Learned { rules: of_prompt(&text), found, missing: Vec::new() });
    }
    let of_screen = screen::learn(&head, samples, &rests);
    Some(match seen {
        prompt::Seen::Perhaps(text) if !of_screen.missing.is_empty() => Learned {
            rules: of_prompt(&text),
            found: Vec::new(),
            missing: vec![format!(
                "{text:?} may be its prompt: submit something while it is watched, so that it comes back"
            )],
        },
        _ => of_screen,
    })
}

/// A text as a pattern that fits in quotes of TOML. Numbers in it may change.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| c.is_ascii_digit()) {
        let (front, digit) = match part.strip_suffix(|c: char| c.is_ascii_digit()) {
            Some(front) => (front, true),
            None => (part, false),
        };
        out.push_str(&regex::escape(front).replace('\'', "."));
        if digit && !(front.is_empty() && out.ends_with("\\d+")) {
            out.push_str("\\d+");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Agents;

    fn sample(rows: &[&str], title: &str, quiet_ms: u64) -> Sample {
        let last = rows.last().copied().unwrap_or_default();
        Sample {
            rows: rows.iter().map(|&row| row.trim_end().to_owned()).collect(),
            cursor_row: rows.len() - 1,
            cursor_col: last.chars().count(),
            title: title.to_owned(),
            quiet: Duration::from_millis(quiet_ms),
            pastes: true,
            ..Sample::default()
        }
    }

    fn check(learned: &Learned, parts: &[&str]) {
        assert_eq!(learned.missing, [""; 0], "{}", learned.rules);
        for part in parts {
            assert!(learned.rules.contains(part), "{part}\n{}", learned.rules);
        }
        let agents = Agents::new(&[("mybot".into(), learned.rules.clone())]).expect("a rule file");
        agents.rules("mybot").expect("sound").expect("there");
        assert_eq!(agents.for_command(&["mybot".to_owned()]), "mybot");
    }

    #[test]
    fn a_busy_row_a_title_and_an_input_field_are_found() {
        let rest = sample(&["mybot 0.3", "done in 4s", "❯ "], "○ mybot", 2000);
        let mut samples = vec![rest.clone(), sample(&["mybot 0.3", "done in 4s", "❯ hel"], "○ mybot", 10)];
        for (n, mark) in "⠋⠙⠹⠸⠼⠴".chars().enumerate() {
            let row = format!("{mark} Thinking ({n}s, esc to interrupt)");
            samples.push(sample(&["mybot 0.3", &row, "❯ "], "◐ mybot", 80));
        }
        samples.push(rest);
        let learned = learn("mybot", "mybot", &samples).expect("it was at rest");
        let parts =
            ["(?i)esc to interrupt", "title = '^[◐]'", "frame = '^\\s*❯(?:\\s|$)'", "brackets = true"];
        check(&learned, &parts);
    }

    #[test]
    fn a_prompt_in_front_of_the_cursor_is_found() {
        for (prompt, pattern) in [
            ("me> ", "pattern = '^me> $'"),
            ("> ", "pattern = '^> $'"),
            ("You: ", "pattern = '^You: $'"),
            ("[12] it's me # ", "pattern = '^\\[\\d+\\] it.s me \\# $'"),
        ] {
            let asked = format!("{prompt}hello");
            let samples = [
                sample(&["Welcome", prompt], "", 2000),
                sample(&["Welcome", &format!("{prompt}hel")], "", 10),
                // A pause while typing is no prompt.
                sample(&["Welcome", &format!("{prompt}hell")], "", 1600),
                sample(&["Welcome", &asked, "You said"], "", 100),
                sample(&["Welcome", &asked, "You said hello", prompt], "", 1600),
            ];
            let learned = learn("mybot", "mybot", &samples).expect("it was at rest");
            check(&learned, &[pattern, "base = \"common\""]);
            assert!(!learned.rules.contains("by_state"), "{}", learned.rules);
        }
        // It was never submitted to.
        let learned = learn("mybot", "mybot", &[sample(&["me> "], "", 2000)]).expect("it was at rest");
        assert!(learned.missing[0].contains("\"me> \" may be its prompt"), "{learned:?}");
    }

    /// A field in a box, with a hint that is no text; prompts are repeated in other words. Without
    /// a mark of work, only quiet tells when an answer is over.
    #[test]
    fn a_boxed_field_is_found() {
        let screen = |above: &[&str], field: &str, quiet: u64| {
            let (top, bottom) = (format!("╭{}╮", "─".repeat(30)), format!("╰{}╯", "─".repeat(30)));
            let row = format!("│ > {field:<27}│");
            let rows: Vec<&str> =
                above.iter().copied().chain([&*top, &*row, &*bottom, "? for help"]).collect();
            Sample { cursor_row: above.len() + 1, cursor_col: 4, ..sample(&rows, "", quiet) }
        };
        let samples = [
            screen(&[], "Ask anything", 2000),
            screen(&[], "tell me", 50),
            screen(&["you said: tell me"], "Ask anything", 50),
            screen(&["you said: tell me", "This and that."], "Ask anything", 2000),
        ];
        let learned = learn("mybot", "mybot", &samples).expect("it was at rest");
        let parts = [
            "frame = '^[\\s│]*>(?:\\s+Ask anything|\\s|$)'",
            "border = '",
            "echo = '^\\s*you said: +\\S'",
            "by_state = true",
        ];
        check(&learned, &parts);
        assert!(learned.found.iter().any(|line| line.contains("quiet")), "{learned:?}");
    }

    #[test]
    fn what_was_not_seen_is_said() {
        assert_eq!(learn("x", "x", &[sample(&["a"], "", 10)]), None);
        let there = Sample { cursor_row: 0, cursor_col: 0, ..sample(&["", "it's"], "", 9000) };
        let learned = learn("x", "x", &[there]).expect("it was at rest");
        assert_eq!(learned.missing.len(), 2, "{learned:?}");
        let made = Agents::new(&[("x".into(), learned.rules)]).expect("a rule file").rules("x");
        made.expect("sound").expect("there");
    }
}
