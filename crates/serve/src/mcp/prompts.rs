//! Prompts: common flows, which a user starts in the client.

use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};

use tapdeck_tape::nearest::unknown;

use super::access::Allow;

/// The longest argument.
const ARGUMENT: usize = 4096;

/// A prompt: its words have the arguments in braces.
pub(super) struct Flow {
    pub(super) name: &'static str,
    title: &'static str,
    about: &'static str,
    /// What a client needs to follow it.
    pub(super) needs: Allow,
    /// Names and meanings of the arguments. All are required.
    arguments: &'static [(&'static str, &'static str)],
    words: &'static str,
}

const SESSION: (&str, &str) = ("session", "Name of the session");

static FLOWS: [Flow; 4] = [
    Flow {
        name: "watch_agent",
        title: "Watch an agent and report",
        about: "Follow a coding agent in a session and say what it does, without touching it",
        needs: Allow::Read,
        arguments: &[SESSION],
        words: "Watch the Tapdeck session \"{session}\" and report. Read its screen with read_screen, then \
                use wait_for with states [\"idle\", \"blocked\", \"done\"] to wait for the next stop. After \
                each stop, summarize in two or three sentences what the agent did, from list_turns, \
                read_turn and the screen. If it is blocked, quote the question that it asks and stop. Do \
                not type anything.",
    },
    Flow {
        name: "answer_blocked",
        title: "Answer a blocked agent",
        about: "Look at the question that an agent asks, decide with the user, and answer it",
        needs: Allow::Drive,
        arguments: &[SESSION],
        words: "The agent in the Tapdeck session \"{session}\" may wait for an answer. Call explain_state \
                and read_screen. If it is blocked, tell me the question, the choices, and what each would \
                do. Recommend one, and wait for my decision. Then answer with the answer tool, check with \
                read_screen that the question is gone, and report.",
    },
    Flow {
        name: "review_pair",
        title: "Review pair",
        about: "Let one agent write and another review, until the reviewer has no more findings",
        needs: Allow::Drive,
        arguments: &[
            ("writer", "Name of the session whose agent writes"),
            ("reviewer", "Name of the session whose agent reviews"),
            ("task", "The task"),
        ],
        words: "Run a review between two Tapdeck sessions. Writer: \"{writer}\". Reviewer: \"{reviewer}\". \
                Task: {task}\n\nAsk the writer to do the task, with the ask tool, and wait for its answer. \
                Give the reviewer the task and the writer's answer, and ask for concrete findings or the \
                single word APPROVED. Pass the findings on to the writer. Repeat at most five times, until \
                the reviewer answers APPROVED. If a session is blocked, stop and ask me. At the end, \
                summarize what was changed and why.",
    },
    Flow {
        name: "find_in_recordings",
        title: "Find in recordings",
        about: "Find out when and how something happened in past sessions",
        needs: Allow::Read,
        arguments: &[("question", "What you want to know")],
        words: "Answer this question from the Tapdeck recordings of past sessions: {question}\n\nUse \
                search_recordings with a few different patterns, read around the best hits with \
                read_recording, and quote the recording and the line for each fact. Say so if the \
                recordings do not tell.",
    },
];

/// Returns the prompts that a client can follow.
pub(super) fn list(allow: Allow) -> Vec<Prompt> {
    let allowed = FLOWS.iter().filter(|flow| flow.needs <= allow);
    allowed
        .map(|flow| {
            let arguments = flow
                .arguments
                .iter()
                .map(|(name, about)| PromptArgument::new(*name).with_description(*about).with_required(true));
            Prompt::new(flow.name, Some(flow.about), Some(arguments.collect())).with_title(flow.title)
        })
        .collect()
}

fn wrong(why: String) -> ErrorData {
    ErrorData::invalid_params(why, None)
}

/// Finds a prompt by its name.
pub(super) fn find(name: &str) -> Result<&'static Flow, ErrorData> {
    let flow = FLOWS.iter().find(|flow| flow.name == name);
    flow.ok_or_else(|| wrong(format!("no prompt is called {name:.64}")))
}

impl Flow {
    /// Returns the prompt with its arguments filled in.
    pub(super) fn filled(&self, asked: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
        let given = |name: &str| {
            asked.arguments.as_ref()?.get(name)?.as_str().filter(|value| value.len() <= ARGUMENT)
        };
        let known: Vec<&str> = self.arguments.iter().map(|(name, _)| *name).collect();
        let mut names = asked.arguments.iter().flatten().map(|(name, _)| name.as_str());
        if let Some(name) = names.find(|name| !known.contains(name)) {
            return Err(wrong(format!("{}: {}", self.name, unknown("argument", name, &known))));
        }
        // Each piece behind a brace begins with the name of an argument: what an argument holds is
        // not looked at again.
        let mut pieces = self.words.split('{');
        let mut words = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = piece.split_once('}').unwrap_or((piece, ""));
            let value = given(name);
            words.push_str(value.ok_or_else(|| wrong(format!("{} needs the argument {name}", self.name)))?);
            words.push_str(rest);
        }
        let message = PromptMessage::new_text(Role::User, words);
        Ok(GetPromptResult::new(vec![message]).with_description(self.about))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_names_its_arguments() {
        for flow in &FLOWS {
            for (name, _) in flow.arguments {
                assert!(flow.words.contains(&format!("{{{name}}}")), "{} {name}", flow.name);
            }
            let named = flow.words.matches('{').count();
            assert_eq!(named, flow.arguments.len(), "{}", flow.name);
        }
        let asked = GetPromptRequestParams::new("review_pair");
        assert!(find("review_pair").expect("known").filled(&asked).is_err());
        assert_eq!(list(Allow::Read).len(), 2);
    }
}
