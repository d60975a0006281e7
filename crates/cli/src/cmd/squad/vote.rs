//! The vote: what the judge is asked, and which agent it names.

use std::fmt::Write as _;

use tapdeck::squad::{Squad, State, Vote};

/// The line in which the judge names an agent.
const BEST: &str = "BEST:";

/// The judge's prompt, once all agents have answered; `None` before.
pub(super) fn question(squad: &Squad, vote: &Vote, state: &State) -> Option<String> {
    let mut text = format!("{}\n", vote.before.trim_end());
    let names: Vec<&str> = vote.agents.iter().map(|name| name.get_ref().as_str()).collect();
    for name in &names {
        let saved = state.agents.get(*name)?;
        let answer = saved.answer.as_deref()?;
        // Writing to a string cannot fail.
        let _ = write!(text, "\n=== {name}: answer ===\n{}\n", answer.trim_end());
        if squad.agents.contains_key(*name)
            && let Some(worktree) = &saved.worktree
        {
            let diff = worktree.diff().unwrap_or_else(|e| format!("[no diff: {e}]"));
            let diff = if diff.trim().is_empty() { "[no changes]" } else { diff.trim_end() };
            let _ = write!(text, "\n=== {name}: diff ===\n{diff}\n");
        }
    }
    let _ = write!(
        text,
        "\nName the best one of {}. End your answer with a line of its own: {BEST} and its name.",
        names.join(", ")
    );
    Some(text)
}

/// The agent that the judge's answer names.
pub(super) fn best<'a>(vote: &'a Vote, answer: &str) -> Option<&'a str> {
    let mut names = vote.agents.iter().map(|name| name.get_ref().as_str());
    let said = answer.lines().rev().find_map(|line| line.split_once(BEST).map(|(_, name)| name))?;
    let said = said.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    names.find(|name| *name == said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_the_word_counts() {
        let squad = "[agents.one]\ncommand=['x']\nprompt='p'\n[agents.two]\ncommand=['x']\nprompt='p'\n\
                     [vote]\nagents=['one','two']\njudge='one'\n";
        let squad = Squad::parse(squad).expect("a squad");
        let vote = squad.vote.as_ref().expect("a vote");
        for (answer, named) in [
            ("BEST: one\nno, wait\n  **BEST: two**\n", Some("two")),
            ("● BEST: one.", Some("one")),
            ("BEST: three", None),
            ("one is the best", None),
        ] {
            assert_eq!(best(vote, answer), named, "{answer}");
        }
    }
}
