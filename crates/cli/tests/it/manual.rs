//! The manual, tried: every `sh` and `console` block of a page runs, in order, in a home and a
//! folder of the page's own, with the built command first in `PATH`.
//!
//! A `console` block shows commands (`$ …`) and all that they print. `…` stands for any text, and
//! alone on a line for any lines. A comment in front of a block changes how it is run:
//!
//! - `<!-- not run: REASON -->` leaves it out;
//! - `<!-- exits with N -->` expects that exit code of its last command;
//! - `<!-- at a terminal`, then one step a line (`expect TEXT`, `send KEY…`, `type TEXT`,
//!   `stable`), then `-->`, runs it on a terminal;
//! - `<!-- in the background until TEXT -->` leaves it running until the end of the page; without
//!   `until TEXT` nothing is waited for;
//! - `<!-- file NAME -->` writes a block of any language to that file;
//! - `<!-- setup`, commands, `-->` runs commands that readers need not see.
//!
//! `cargo nextest run -p tapdeck-cli manual::summary --no-capture` lists what is not run, and why.

#![allow(clippy::print_stdout, reason = "tests report what they run")]

mod page;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tapdeck::testing::Program;
use tapdeck_core::Exit;

use crate::support::{Home, PATIENCE, TAPDECK, eventually};
use page::{Block, How, Step, matches};

/// The end of a command's output in the output of its block.
const MARK: &str = "@@end of command@@";

macro_rules! pages {
    ($($test:ident: $page:literal,)+) => {
        const PAGES: &[&str] = &[$($page),+];
        $(#[test] fn $test() { try_page($page); })+
    };
}

pages! {
    readme: "README.md",
    start_here: "docs/README.md",
    install: "docs/install.md",
    record: "docs/record.md",
    live: "docs/live.md",
    agents: "docs/agents.md",
    branch: "docs/branch.md",
    squad: "docs/squad.md",
    mcp: "docs/mcp.md",
    acp: "docs/acp.md",
    tests: "docs/tests.md",
    remote: "docs/remote.md",
    browser: "docs/browser.md",
    api: "docs/api.md",
    recordings: "docs/recordings.md",
    recipes: "docs/recipes.md",
    troubleshooting: "docs/troubleshooting.md",
    comparison: "docs/comparison.md",
    commands: "docs/commands.md",
    configuration: "docs/configuration.md",
    scenarios: "docs/scenarios.md",
    formats: "docs/formats.md",
    protocols: "docs/protocols.md",
    conformance: "docs/conformance.md",
    robustness: "docs/robustness.md",
    glossary: "docs/glossary.md",
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).expect("the page is there");
    page::blocks(&text).unwrap_or_else(|fault| panic!("{page}:{fault}"))
}

#[test]
fn every_page_is_tried() {
    let folder = fs::read_dir(root().join("docs")).expect("a folder").flatten();
    let names = folder.filter_map(|entry| entry.file_name().into_string().ok());
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.push("README.md".to_owned());
    pages.retain(|page| !PAGES.contains(&page.as_str()) && page != "docs/SUMMARY.md");
    assert!(pages.is_empty(), "add to the list of pages: {pages:?}");
}

/// Lists how many blocks of each page run, and which do not.
#[test]
fn summary() {
    let mut all = BTreeMap::from([("run", 0), ("not run", 0)]);
    for page in PAGES {
        let blocks = blocks(page);
        let commands: Vec<&Block> = blocks.iter().filter(|block| block.is_commands()).collect();
        let skipped: Vec<_> = commands.iter().filter_map(|block| Some((block, block.reason()?))).collect();
        println!("{page}: {} run, {} not run", commands.len() - skipped.len(), skipped.len());
        for (block, reason) in &skipped {
            println!("   line {}: {reason}: {}", block.line, block.text.lines().next().unwrap_or_default());
        }
        *all.entry("run").or_default() += commands.len() - skipped.len();
        *all.entry("not run").or_default() += skipped.len();
    }
    println!("together: {all:?}");
    assert!(all["run"] >= 2 * all["not run"], "most of the manual can be run: {all:?}");
}

/// Commands and options that the text names exist.
#[test]
fn options_in_the_text_exist() {
    let home = Home::new();
    let help = |words: &[&str]| {
        let out = home.run(words.iter().copied().chain(["--help"]));
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let mut known = BTreeMap::new();
    let mut faults = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).expect("the page is there");
        for (line, span) in page::spans(&text) {
            let Some((command, options)) = page::options(&span) else { continue };
            let help = known.entry(command.clone()).or_insert_with(|| {
                let words: Vec<&str> = command.split(' ').collect();
                // The second word is a subcommand or an argument.
                help(&words).or_else(|| help(&words[..1]))
            });
            let missing = match help {
                None if span.starts_with("tapdeck ") && !span.contains(": ") => Some(command),
                Some(help) => options.into_iter().find(|option| !help.contains(option.as_str())),
                None => None,
            };
            faults.extend(missing.map(|what| format!("{page}:{line}: `{span}`: there is no {what}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Runs a page's blocks in order.
fn try_page(page: &str) {
    let blocks = blocks(page);
    if !blocks.iter().any(|block| block.is_commands() && block.reason().is_none()) {
        println!("{page}: nothing to run");
        return;
    }
    let mut run = PageRun::new();
    for block in &blocks {
        println!("{page}:{}", block.line);
        let at = format!("{page}:{}", block.line);
        let text = run.substituted(&block.text);
        match &block.how {
            How::NotRun(reason) => println!("   not run: {reason}"),
            How::File(name) => run.write(name, &text),
            How::AtTerminal(steps) => run.at_terminal(&at, &text, steps),
            How::InBackground(until) => run.in_background(&at, &text, until),
            How::Run if block.language == "console" => run.transcript(&at, &text, block.exit),
            How::Run => run.script(&at, &text, block.exit),
        }
    }
}

/// One run of a page: a home with the command installed, and the servers that run in it.
struct PageRun {
    home: Home,
    /// What addresses in the manual become here.
    addresses: Vec<(&'static str, String)>,
    servers: Vec<Child>,
}

impl PageRun {
    fn new() -> Self {
        let home = Home::new();
        for folder in ["bin", "work"] {
            fs::create_dir(home.path(folder)).expect("a folder");
        }
        let tapdeck = std::env::var("TAPDECK_BINARY").unwrap_or_else(|_| TAPDECK.to_owned());
        std::os::unix::fs::symlink(tapdeck, home.path("bin/tapdeck")).expect("a link");
        // The manual's agent; the real one needs an account.
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/manual/claude");
        std::os::unix::fs::symlink(agent, home.path("bin/claude")).expect("a link");
        fs::write(home.path(".bashrc"), "PS1='$ '\n").expect("written");
        let mut addresses =
            vec![("build.example", "127.0.0.1".to_owned()), ("0.0.0.0", "127.0.0.1".to_owned())];
        // Held together, so that they differ.
        let ports = [":4433", ":8443", ":2222", ":8080"].map(|port| (port, free_port()));
        addresses.extend(ports.iter().map(|(port, (free, _))| (*port, format!(":{free}"))));
        Self { home, addresses, servers: Vec::new() }
    }

    fn substituted(&self, text: &str) -> String {
        self.addresses.iter().fold(text.to_owned(), |text, (name, here)| text.replace(name, here))
    }

    fn path(&self) -> String {
        let rest = std::env::var("PATH").unwrap_or_default();
        format!("{}:{rest}", self.home.path("bin").display())
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home.path("work").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    /// A shell in the page's folder, with nothing on its standard input.
    fn shell(&self, script: &str) -> Command {
        let mut command = self.home.command("bash");
        command.args(["-c", script]).current_dir(self.home.path("work"));
        // The prompt that the pages wait for is that of the home's `.bashrc`.
        command.env("PATH", self.path()).env("SHELL", "/bin/bash");
        for variable in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TAPDECK_TOKEN"] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    /// Runs a script to its end; returns its exit code and what it printed.
    fn run(&self, at: &str, script: &str) -> (Option<i32>, String) {
        let path = self.home.path("output");
        let file = File::create(&path).expect("a file");
        let mut command = self.shell(script);
        let mut child = command.stdout(file.try_clone().expect("a copy")).stderr(file).spawn().expect("bash");
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if Instant::now() > deadline {
                end(&mut child);
                panic!("{at} does not end; it printed:\n{}", self.printed(&path));
            }
            std::thread::park_timeout(Duration::from_millis(2));
        };
        (status.code(), self.printed(&path))
    }

    /// What was printed, as a reader at another machine would see it.
    fn printed(&self, path: &Path) -> String {
        let bytes = fs::read(path).expect("the output");
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        text.replace(&*self.home.path("").to_string_lossy(), "/home/ada/")
    }

    fn script(&self, at: &str, text: &str, exit: i32) {
        let (code, printed) = self.run(at, &format!("set -e\n{text}"));
        assert_eq!(code, Some(exit), "{at}:\n{text}\nprinted:\n{printed}");
    }

    /// Runs the commands of a `console` block in one shell and compares what each prints.
    fn transcript(&self, at: &str, text: &str, exit: i32) {
        let commands = page::commands(text);
        let mut script = String::new();
        for (command, _) in &commands {
            // The next command finds the exit code of this one in `$?`.
            let mark = format!("code=$?; printf '\\n%s %s\\n' '{MARK}' $code; (exit $code)");
            script.push_str(&format!("{command}\n{mark}\n"));
        }
        let (_, printed) = self.run(at, &script);
        let mut rest = printed.as_str();
        for (n, (command, wanted)) in commands.iter().enumerate() {
            let Some((output, after)) = rest.split_once(MARK) else {
                panic!("{at}: `{command}` ended the shell; it printed:\n{rest}");
            };
            let (code, after) = after.split_once('\n').unwrap_or((after, ""));
            rest = after;
            let last = n + 1 == commands.len();
            let asked = commands.get(n + 1).is_some_and(|(next, _)| next.contains("$?"));
            if !asked {
                let wanted = if last { exit } else { 0 };
                assert_eq!(code.trim(), wanted.to_string(), "{at}: `{command}` printed:\n{output}");
            }
            assert!(
                matches(wanted, output),
                "{at}: `{command}` should print:\n{wanted}\nand prints:\n{output}"
            );
        }
    }

    fn at_terminal(&self, at: &str, text: &str, steps: &[Step]) {
        let commands: Vec<String> = page::commands_or_script(text);
        let environment: Vec<_> =
            self.shell("").get_envs().map(|(k, v)| (k.to_owned(), v.map(Into::into))).collect();
        let mut program = Program::new(["bash", "-c", &commands.join("\n")]).cwd(self.home.path("work"));
        program = program.patience(PATIENCE);
        for (name, value) in environment {
            let value: Option<std::ffi::OsString> = value;
            program = program.env(name, value.unwrap_or_default());
        }
        let mut session = program.start().unwrap_or_else(|e| panic!("{at}: {e}"));
        for step in steps {
            let done = match step {
                Step::Expect(text) => session.expect(text),
                Step::Send(keys) => keys.split_whitespace().try_for_each(|key| session.send(key)),
                Step::Type(text) => session.type_text(&text.replace("\\n", "\n")),
                Step::Stable => session.wait_stable(Duration::from_millis(200)),
            };
            done.unwrap_or_else(|e| panic!("{at}: {step:?}: {e}\n{}", e.details()));
        }
        let exit = session.wait_exit().unwrap_or_else(|e| panic!("{at}: {e}\n{}", e.details()));
        assert_eq!(exit, Exit::Code(0), "{at}: {}", session.text());
    }

    fn in_background(&mut self, at: &str, text: &str, until: &str) {
        let path = self.home.path(&format!("server-{}", self.servers.len()));
        let file = File::create(&path).expect("a file");
        let script = page::commands_or_script(text).join("\n");
        let mut command = self.shell(&script);
        let child = command.stdout(file.try_clone().expect("a copy")).stderr(file).spawn().expect("bash");
        self.servers.push(child);
        eventually(&format!("{until:?} of {at}"), || self.printed(&path).contains(until));
    }

    /// Whether a process runs that has the page's home.
    fn has_processes(&self) -> bool {
        let home = format!("HOME={}", self.home.path("").display());
        let home = home.trim_end_matches('/').as_bytes();
        let all = fs::read_dir("/proc").expect("the processes").flatten();
        all.into_iter().any(|process| {
            // Processes of others cannot be read, and some are gone by now.
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == home)
        })
    }

    /// The live sessions that a page has left, by id.
    fn left(&self) -> Vec<String> {
        let list = self.home.run(["ls", "--json"]).stdout;
        let list: Value = serde_json::from_slice(&list).unwrap_or_default();
        let all = list.as_array().cloned().unwrap_or_default();
        all.iter().filter_map(|session| Some(session["id"].as_str()?.to_owned())).collect()
    }
}

impl Drop for PageRun {
    fn drop(&mut self) {
        self.servers.iter_mut().for_each(end);
        let ended = || {
            let left = self.left();
            for id in &left {
                // It may have ended by itself meanwhile. A signal may meet a shell's child instead
                // of the shell, so this is done again until the session is gone.
                let _ = self.home.run(["kill", "--signal", "KILL", id]);
                let _ = self.home.run(["peek", id]);
            }
            left.is_empty()
        };
        if std::thread::panicking() {
            ended();
        } else {
            eventually("the end of all sessions", ended);
            eventually("the end of all processes of the page", || !self.has_processes());
        }
    }
}

/// A free port, and what holds it for the moment.
fn free_port() -> (u16, TcpListener) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    (listener.local_addr().expect("an address").port(), listener)
}

/// Ends a shell and everything that it runs.
fn end(child: &mut Child) {
    let group = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a process");
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        // The group may be gone already.
        let _ = rustix::process::kill_process_group(group, signal);
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}
