//! Rule files for agents (`agents/*.toml`): which commands they are for, what their prompts and
//! screens look like. The product's own are built in; a user's file of the same name takes the
//! place of one.
//!
//! Only the table `[turns]` is read here; what else is in such a file belongs to others.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tapdeck_core::ParseError;
use tapdeck_core::turns::{
    AgentState, Journal, JournalRecord, PromptText, RuleError, RuleText, Rules, StateText, ToolCalls,
    ToolResults,
};

/// The rule files of the product's own.
pub(crate) const BUILTIN: [(&str, &str); 11] = [
    ("common", include_str!("../agents/common.toml")),
    ("generic", include_str!("../agents/generic.toml")),
    ("shell", include_str!("../agents/shell.toml")),
    ("claude", include_str!("../agents/claude.toml")),
    ("cline", include_str!("../agents/cline.toml")),
    ("codex", include_str!("../agents/codex.toml")),
    ("copilot", include_str!("../agents/copilot.toml")),
    ("aider", include_str!("../agents/aider.toml")),
    ("gemini", include_str!("../agents/gemini.toml")),
    ("opencode", include_str!("../agents/opencode.toml")),
    ("qwen", include_str!("../agents/qwen.toml")),
];

/// The endings of scripts that an interpreter runs.
const SCRIPTS: [&str; 5] = [".js", ".mjs", ".cjs", ".py", ".sh"];

/// A rule file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// It is no TOML, or not of this shape.
    #[error("{name}.toml, line {line}: {why}")]
    Shape {
        /// Which file.
        name: String,
        /// Where.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It has no `[turns]`.
    #[error("{0}.toml has no table [turns]")]
    NoTurns(String),
    /// A rule of it is wrong.
    #[error("{name}.toml: {source}")]
    Rule {
        /// Which file.
        name: String,
        /// Which rule, and why.
        source: RuleError,
    },
    /// It builds on a file that is not there.
    #[error("{name}.toml builds on {base:?}, and there is no such file")]
    NoBase {
        /// Which file.
        name: String,
        /// What it builds on.
        base: String,
    },
}

/// A rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentFile {
    /// Its name.
    pub(crate) name: String,
    /// The commands that it is for.
    pub(crate) commands: Vec<String>,
    base: Option<String>,
    /// The arguments with which it resumes a conversation, whose id stands for `{id}`.
    resume: Vec<String>,
    text: RuleText,
}

#[derive(Deserialize)]
struct File {
    turns: Option<Turns>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turns {
    #[serde(default)]
    commands: Vec<String>,
    base: Option<String>,
    #[serde(default)]
    resume: Vec<String>,
    settle_ms: Option<u64>,
    #[serde(default)]
    by_state: bool,
    answer_within_ms: Option<u64>,
    journal_within_ms: Option<u64>,
    quiet_ms: Option<u64>,
    frame: Option<String>,
    border: Option<String>,
    #[serde(default)]
    chrome: Vec<String>,
    echo: Option<String>,
    interrupted: Option<String>,
    placeholder: Option<String>,
    #[serde(default)]
    brackets: bool,
    #[serde(default)]
    eol_marks: Vec<String>,
    #[serde(default)]
    clear: Vec<String>,
    #[serde(default)]
    interrupt: Vec<String>,
    #[serde(default)]
    refuse: Vec<RefuseTable>,
    completes: Option<String>,
    #[serde(default)]
    journal: Vec<JournalTable>,
    #[serde(default)]
    prompt: Vec<PromptTable>,
    #[serde(default)]
    state: Vec<StateTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptTable {
    name: String,
    pattern: String,
    continuation: Option<String>,
    #[serde(default)]
    strict: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateTable {
    name: String,
    state: String,
    title: Option<String>,
    #[serde(default)]
    screen: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    field: Option<String>,
    cursor: Option<String>,
    progress: Option<String>,
    last_rows: Option<u16>,
    quiet_ms: Option<u64>,
    stands_ms: Option<u64>,
    changing_ms: Option<u64>,
    #[serde(default)]
    pastes: bool,
    #[serde(default = "yes")]
    menu: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefuseTable {
    pattern: String,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalTable {
    name: String,
    path: String,
    #[serde(default)]
    lines: bool,
    id: Option<String>,
    folder: Option<String>,
    born: Option<String>,
    resume: Option<String>,
    time: Option<String>,
    #[serde(default)]
    record: Vec<RecordTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordTable {
    when: BTreeMap<String, String>,
    state: Option<String>,
    detail: Option<String>,
    #[serde(default)]
    asked: Vec<String>,
    #[serde(default)]
    said: Vec<String>,
    #[serde(default)]
    ended: bool,
    #[serde(default)]
    interrupted: bool,
    used: Option<ToolCallsTable>,
    returned: Option<ToolResultsTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCallsTable {
    #[serde(default)]
    each: String,
    name: String,
    id: String,
    #[serde(default)]
    about: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolResultsTable {
    #[serde(default)]
    each: String,
    id: String,
    #[serde(default)]
    text: Vec<String>,
    failed: Option<String>,
}

impl From<ToolCallsTable> for ToolCalls {
    fn from(table: ToolCallsTable) -> Self {
        let ToolCallsTable { each, name, id, about } = table;
        Self { each, name, id, about }
    }
}

impl From<ToolResultsTable> for ToolResults {
    fn from(table: ToolResultsTable) -> Self {
        let ToolResultsTable { each, id, text, failed } = table;
        Self { each, id, text, failed }
    }
}

impl JournalTable {
    fn read(self) -> Result<Journal, ParseError> {
        let record = |r: RecordTable| {
            Ok(JournalRecord {
                when: r.when.into_iter().collect(),
                state: r.state.as_deref().map(str::parse).transpose()?,
                detail: r.detail,
                asked: r.asked,
                said: r.said,
                ended: r.ended || r.interrupted,
                interrupted: r.interrupted,
                used: r.used.map(Into::into),
                returned: r.returned.map(Into::into),
            })
        };
        Ok(Journal {
            name: self.name,
            path: self.path,
            lines: self.lines,
            id: self.id,
            folder: self.folder,
            born: self.born,
            resume: self.resume,
            time: self.time,
            records: self.record.into_iter().map(record).collect::<Result<_, ParseError>>()?,
        })
    }
}

impl AgentFile {
    /// Reads a rule file.
    ///
    /// # Errors
    /// Names what is wrong, and the line.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, AgentError> {
        let shape = |line: usize, why: String| AgentError::Shape { name: name.into(), line, why };
        let file: File = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |s| 1 + text.bytes().take(s.start).filter(|b| *b == b'\n').count());
            shape(line, e.message().to_owned())
        })?;
        let turns = file.turns.ok_or_else(|| AgentError::NoTurns(name.into()))?;
        let mut states = Vec::new();
        for s in turns.state {
            let state: AgentState = s.state.parse().map_err(|why: ParseError| {
                let line = text.lines().position(|l| l.contains(&s.name)).map_or(1, |n| n + 1);
                shape(line, why.into())
            })?;
            states.push(StateText {
                name: s.name,
                state,
                title: s.title,
                screen: s.screen,
                without: s.without,
                field: s.field,
                cursor: s.cursor,
                progress: s.progress,
                last_rows: s.last_rows,
                quiet: s.quiet_ms.map(Duration::from_millis),
                stands: s.stands_ms.map(Duration::from_millis),
                changing: s.changing_ms.map(Duration::from_millis),
                pastes: s.pastes,
                without_menu: !s.menu,
            });
        }
        let mut journals = Vec::new();
        for journal in turns.journal {
            let line = text.lines().position(|l| l.contains(&journal.name)).map_or(1, |n| n + 1);
            journals.push(journal.read().map_err(|why| shape(line, why.into()))?);
        }
        let prompts = turns.prompt.into_iter().map(|p| PromptText {
            name: p.name,
            pattern: p.pattern,
            continuation: p.continuation,
            strict: p.strict,
        });
        Ok(Self {
            name: name.into(),
            commands: turns.commands,
            base: turns.base,
            resume: turns.resume,
            text: RuleText {
                name: name.into(),
                prompts: prompts.collect(),
                states,
                settle: turns.settle_ms.map(Duration::from_millis),
                by_state: turns.by_state,
                answer_within: turns.answer_within_ms.map(Duration::from_millis),
                journal_within: turns.journal_within_ms.map(Duration::from_millis),
                quiet: turns.quiet_ms.map(Duration::from_millis),
                frame: turns.frame,
                border: turns.border,
                chrome: turns.chrome,
                echo: turns.echo,
                interrupted: turns.interrupted,
                placeholder: turns.placeholder,
                brackets: turns.brackets,
                eol_marks: turns.eol_marks,
                journals,
                clear: turns.clear,
                interrupt: turns.interrupt,
                refuse: turns.refuse.into_iter().map(|r| (r.pattern, r.why)).collect(),
                completes: turns.completes,
            },
        })
    }
}

/// The text of a rule file of the product's own.
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// All rule files that are known.
#[derive(Debug, Clone, Default)]
pub struct Agents(Vec<AgentFile>);

impl Agents {
    /// The product's own, with the user's in front: name and contents each.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn new(own: &[(String, String)]) -> Result<Self, AgentError> {
        let mut files = Vec::new();
        for (name, text) in own {
            files.push(AgentFile::parse(name, text)?);
        }
        for (name, text) in BUILTIN {
            if !files.iter().any(|f| f.name == name) {
                files.push(AgentFile::parse(name, text)?);
            }
        }
        Ok(Self(files))
    }

    /// The commands that the rules of this name are for.
    pub fn commands(&self, name: &str) -> &[String] {
        self.0.iter().find(|f| f.name == name).map_or(&[], |f| &f.commands)
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|f| f.name.as_str()).collect()
    }

    /// The file that is for a command: by its program, or by the script that an interpreter runs.
    pub fn for_command(&self, argv: &[String]) -> &str {
        let find = |word: &str| self.0.iter().find(|f| f.commands.iter().any(|c| c == word));
        let (program, inner) = names_of(argv);
        match inner.iter().find_map(|word| find(word)).or_else(|| find(&program)) {
            Some(file) => &file.name,
            None => "generic",
        }
    }

    /// A command line with which an agent resumes a conversation, made from the one that it was
    /// started with; `None` where its rules do not say how, or the command line is not understood.
    pub fn resumed(&self, name: &str, argv: &[String], id: &str) -> Option<Vec<String>> {
        let file = self.0.iter().find(|f| f.name == name)?;
        // What an agent wrote down is not taken for an option, or for several words.
        let is_id = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if file.resume.is_empty() || id.is_empty() || id.starts_with('-') || !id.chars().all(is_id) {
            return None;
        }
        let is_agent = |word: &String| {
            let bare = word.rsplit('/').next().unwrap_or("");
            let bare = SCRIPTS.iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
            file.commands.iter().any(|command| command == bare)
        };
        // A shell's command is one word, which only the shell understands.
        if argv.iter().any(|word| word == "-c") {
            return None;
        }
        let at = argv.iter().position(is_agent)? + 1;
        let (program, rest) = argv.split_at(at);
        let resume = file.resume.iter().map(|word| word.replace("{id}", id));
        Some(program.iter().cloned().chain(resume).chain(not_resuming(rest, &file.resume)).collect())
    }

    /// The rules of a file, with those that it builds on; `None` when there is no such file.
    ///
    /// # Errors
    /// When a rule is wrong.
    pub fn rules(&self, name: &str) -> Result<Option<Rules>, AgentError> {
        self.rules_under(name, 0)
    }

    fn rules_under(&self, name: &str, depth: u8) -> Result<Option<Rules>, AgentError> {
        let Some(file) = self.0.iter().find(|f| f.name == name) else { return Ok(None) };
        let base = match &file.base {
            Some(base) => {
                let missing = || AgentError::NoBase { name: name.into(), base: base.clone() };
                // A circle has no bottom either.
                let found = if depth < 8 { self.rules_under(base, depth + 1)? } else { None };
                Some(found.ok_or_else(missing)?)
            }
            None => None,
        };
        let rules = Rules::new(&file.text, base.as_ref());
        rules.map(Some).map_err(|source| AgentError::Rule { name: name.into(), source })
    }
}

/// The arguments without those that resume another conversation already, and without a first
/// prompt: it was answered in the conversation.
fn not_resuming(arguments: &[String], resume: &[String]) -> Vec<String> {
    let is_option = |word: &String| word.starts_with('-');
    let mut rest: Vec<String> = arguments.iter().skip_while(|word| !is_option(word)).cloned().collect();
    let id = resume.iter().position(|word| word.contains("{id}")).unwrap_or(resume.len());
    let (before, behind) = (&resume[..id], resume.get(id + 1..).unwrap_or_default());
    if let Some(at) =
        before.last().filter(|word| is_option(word)).and_then(|o| rest.iter().position(|w| w == o))
    {
        rest.remove(at);
        if rest.get(at).is_some_and(|word| !is_option(word)) {
            rest.remove(at);
        }
    }
    if !behind.is_empty()
        && let Some(at) = rest.windows(behind.len()).position(|words| words == behind)
    {
        rest.drain(at..at + behind.len());
    }
    rest
}

/// The words at which a program that runs others names the other one, or 0: an interpreter has its
/// script as the first word, and others have words of their own before the command.
fn inner_words(program: &str) -> usize {
    match program {
        "node" | "bun" | "deno" | "sh" | "bash" | "dash" | "zsh" | "fish" | "ruby" | "perl" => 1,
        python if python.starts_with("python") => 1,
        "npx" | "env" | "uv" | "uvx" | "pipx" | "nice" | "timeout" | "sudo" => 4,
        _ => 0,
    }
}

/// Returns the name of a command's program, and the words that may name what it runs.
fn names_of(argv: &[String]) -> (String, Vec<String>) {
    let base = |arg: &String| arg.rsplit('/').next().unwrap_or("").trim_start_matches('-').to_owned();
    // A login shell has a hyphen in front of its name; whatever else has one is an option.
    let program = argv.first().map(base).unwrap_or_default();
    let words = argv.iter().skip(1).filter(|a| !a.starts_with('-')).map(base);
    let bare = |word: String| match SCRIPTS.iter().find_map(|e| word.strip_suffix(e)) {
        Some(bare) => bare.to_owned(),
        None => word,
    };
    let inner = words.take(inner_words(&program)).map(bare).collect();
    (program, inner)
}

/// The name under which rules are found for a command: that of its program, or of the script that
/// an interpreter runs. `None` for an interpreter or a shell alone.
pub fn command_name(argv: &[String]) -> Option<String> {
    let (program, inner) = names_of(argv);
    let is_name = |word: &String| {
        word.starts_with(char::is_alphabetic)
            && word.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
            && inner_words(word) == 0
            && !matches!(word.as_str(), "run" | "exec" | "tool")
    };
    let found = if inner_words(&program) == 0 { Some(program) } else { inner.into_iter().find(is_name) };
    found.filter(|name| !name.is_empty() && name != "tmux")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_as_its_rules_are_found() {
        let argv = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, name) in [
            ("/opt/mybot --x", Some("mybot")),
            ("python3 bot.py", Some("bot")),
            ("/usr/bin/python3.13 -u /home/ada/bot.py --model x", Some("bot")),
            ("python3 -m chatty", Some("chatty")),
            ("env A=1 python3 bot.py", Some("bot")),
            ("uv run bot.py", Some("bot")),
            ("timeout 5 node dist/chat.mjs", Some("chat")),
            ("bash", None),
            ("python3", None),
        ] {
            assert_eq!(command_name(&argv(line)).as_deref(), name, "{line}");
            let rules = "[turns]\ncommands = ['bot', 'chatty', 'chat', 'mybot']".to_owned();
            let agents = Agents::new(&[("mine".into(), rules)]).expect("read");
            assert_eq!(agents.for_command(&argv(line)) == "mine", name.is_some(), "{line}");
        }
    }

    #[test]
    fn the_rules_of_the_products_own_are_sound() {
        let agents = Agents::new(&[]).expect("read");
        for name in agents.names() {
            agents.rules(name).expect("sound").expect("there");
        }
        let argv = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, wanted) in [
            ("/bin/bash --norc", "shell"),
            ("-zsh", "shell"),
            ("claude --continue", "claude"),
            ("node --no-warnings /opt/bin/codex.js", "codex"),
            ("/usr/bin/python3.13 /usr/local/bin/aider --model x", "aider"),
            ("env A=1 claude", "claude"),
            ("timeout 5 gemini", "gemini"),
            ("bash -c claude", "claude"),
            ("bash build.sh", "shell"),
            ("vim claude", "generic"),
            ("python3 -q", "generic"),
            ("make test", "generic"),
        ] {
            assert_eq!(agents.for_command(&argv(line)), wanted, "{line}");
        }
    }

    #[test]
    fn agents_resume_a_conversation_in_their_own_way() {
        let agents = Agents::new(&[]).expect("read");
        let argv = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (agent, line, wanted) in [
            ("claude", "claude", Some("claude --resume c-1 --fork-session")),
            ("claude", "/opt/claude --model x", Some("/opt/claude --resume c-1 --fork-session --model x")),
            ("claude", "claude --resume old --verbose", Some("claude --resume c-1 --fork-session --verbose")),
            ("claude", "claude prompt", Some("claude --resume c-1 --fork-session")),
            (
                "claude",
                "claude --resume old --fork-session -v",
                Some("claude --resume c-1 --fork-session -v"),
            ),
            ("codex", "node /opt/codex.js --x", Some("node /opt/codex.js fork c-1 -C . --x")),
            ("codex", "codex resume old", Some("codex fork c-1 -C .")),
            ("codex", "codex fork old -C . --x", Some("codex fork c-1 -C . --x")),
            ("claude", "sh -c claude", None),
            ("claude", "vim", None),
            ("shell", "bash", None),
        ] {
            let resumed = agents.resumed(agent, &argv(line), "c-1");
            assert_eq!(resumed, wanted.map(argv), "{line}");
        }
        for id in ["", "--help", "a b", "a;b"] {
            assert_eq!(agents.resumed("claude", &argv("claude"), id), None, "{id:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let cases = [
            ("[turns]\nsettle = 3", "line 2"),
            ("name = \"x\"", "no table [turns]"),
            ("[[turns.state]]\nname = \"a\"\nstate = \"busy\"\n", "no state is called \"busy\""),
            ("[[turns.prompt]]\nname = \"a\"\npattern = '^a\\n$'", "line end"),
            ("[[turns.prompt]]\nname = \"a\"\npattern = \"a\\nb\"", "line end"),
            ("[[turns.prompt]]\nname = \"a\"\npattern = '('", "prompt \"a\""),
            ("[[turns.state]]\nname = \"a\"\nstate = \"idle\"", "needs a title"),
            ("[[turns.state]]\nname = \"a\"\nstate = \"idle\"\nprogress = \"x\"", "progress is busy"),
            ("[turns]\nbase = \"mine\"", "there is no such file"),
        ];
        for (text, wanted) in cases {
            let made = Agents::new(&[("mine".into(), text.into())]).and_then(|a| a.rules("mine"));
            let message = made.expect_err(text).to_string();
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }
}
