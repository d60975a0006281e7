//! `tapdeck doctor`: whether everything is there that the other commands need, tried rather than
//! guessed.

use std::io::IsTerminal;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use tapdeck::turns;
use tapdeck_core::{Exit, WinSize};
use tapdeck_host::backend::CommandSpec;
use tapdeck_host::{Launch, registry};
use tapdeck_serve::client::describe_all;
use tapdeck_serve::door::Door;

use crate::config::Config;
use crate::ending::{Ending, print, print_json};
use crate::failure::Result;
use crate::human;
use crate::sessions::alive;

/// Check this machine, this terminal and your configuration for problems.
#[derive(Args)]
#[command(after_help = "\
The exit code is 1 if a check fails. Warnings and missing optional programs are not failures.

Examples:
  tapdeck doctor
  tapdeck doctor --json | jq '.[] | select(.verdict == \"fails\")'")]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    /// Works, but not as well as it could.
    Look,
    Fails,
    /// Not there; only what needs it is missing.
    Absent,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Fine => "fine",
            Verdict::Look => "look",
            Verdict::Fails => "fails",
            Verdict::Absent => "absent",
        }
    }
}

struct Finding {
    what: &'static str,
    verdict: Verdict,
    says: String,
}

/// The name of a check, and the check.
type Check = (&'static str, fn() -> (Verdict, String));

/// The checks, in the order of the report.
const CHECKS: &[Check] = &[
    ("tapdeck", this_program),
    ("terminal", this_terminal),
    ("locale", locale),
    ("programs", a_program),
    ("sockets", sockets),
    ("recordings", recordings),
    ("settings", settings),
    ("rules", rules),
    ("agents", agents_here),
    ("sessions", sessions),
    ("open files", open_files),
    ("tokens", tokens),
    ("containers", containers),
    ("ssh", ssh_agent),
];

pub(crate) fn run(args: &DoctorArgs) -> Result {
    let check = |(what, check): &Check| {
        let (verdict, says) = check();
        Finding { what, verdict, says }
    };
    let mut failed = false;
    if args.json {
        let all: Vec<Finding> = CHECKS.iter().map(check).collect();
        failed = all.iter().any(|f| f.verdict == Verdict::Fails);
        let all: Vec<Value> = all
            .iter()
            .map(|f| json!({"check": f.what, "verdict": f.verdict.name(), "says": f.says}))
            .collect();
        print_json(&Value::from(all));
    } else {
        // Prints each finding at once: the check of a container engine may take long.
        for finding in CHECKS.iter().map(check) {
            failed |= finding.verdict == Verdict::Fails;
            let Finding { what, verdict, says } = finding;
            print(format_args!("{:6}  {what:10}  {}\n", verdict.name(), human::printable(&says)));
        }
    }
    Ok(Ending::of_check(!failed))
}

fn this_program() -> (Verdict, String) {
    let system = rustix::system::uname();
    let parts = [
        ("containers", cfg!(feature = "docker")),
        ("ssh", cfg!(feature = "ssh")),
        ("network", cfg!(feature = "net")),
        ("page", cfg!(feature = "web")),
        ("viewer", cfg!(feature = "tui")),
        ("hotkeys", cfg!(feature = "hotkeys")),
    ];
    let without: Vec<&str> = parts.iter().filter(|(_, has)| !has).map(|(name, _)| *name).collect();
    let without = match without.len() {
        0 => String::new(),
        _ => format!(", built without {}", without.join(", ")),
    };
    let says = format!(
        "{} on {} {} ({}){without}",
        env!("CARGO_PKG_VERSION"),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        std::env::consts::ARCH,
    );
    (Verdict::Fine, says)
}

fn this_terminal() -> (Verdict, String) {
    let Some(size) = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
        .into_iter()
        .find_map(|fd| rustix::termios::tcgetwinsize(fd).ok())
    else {
        return (
            Verdict::Absent,
            "none here: run, rec, play and attach work without one, view and dash do not".into(),
        );
    };
    let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let (cols, rows) = (size.ws_col, size.ws_row);
    match var("TERM") {
        None => (Verdict::Look, "TERM is not set: most programs will draw as on paper".into()),
        Some(term) if term == "dumb" => {
            (Verdict::Look, "TERM is dumb: programs that draw will refuse to, or make a mess".into())
        }
        Some(_) if cols == 0 || rows == 0 => {
            (Verdict::Look, format!("it says that it is {cols}x{rows}: programs are told 80x24"))
        }
        Some(term) => {
            let colours = var("COLORTERM").map(|c| format!(", {c}")).unwrap_or_default();
            let piped = if std::io::stdout().is_terminal() { "" } else { " (not this output)" };
            (Verdict::Fine, format!("{term}{colours}, {cols}x{rows}{piped}"))
        }
    }
}

fn locale() -> (Verdict, String) {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = set.iter().find_map(|name| Some((name, std::env::var(name).ok().filter(|v| !v.is_empty())?)));
    match set {
        Some((name, value)) if is_utf8(&value) => (Verdict::Fine, format!("{name}={value}")),
        Some((name, value)) => (
            Verdict::Look,
            format!("{name}={value} is not UTF-8: programs may write question marks; try C.UTF-8"),
        ),
        None => (
            Verdict::Look,
            "none of LC_ALL, LC_CTYPE, LANG is set: programs may not write UTF-8; try LANG=C.UTF-8".into(),
        ),
    }
}

fn is_utf8(locale: &str) -> bool {
    let charset = locale.split('@').next().and_then(|l| l.split_once('.')).map(|(_, charset)| charset);
    charset.is_some_and(|c| c.eq_ignore_ascii_case("utf-8") || c.eq_ignore_ascii_case("utf8"))
}

/// The text that the test program writes.
const WORD: &str = "tapdeck-doctor";

/// Runs a program on a terminal, on which all other commands depend.
fn a_program() -> (Verdict, String) {
    let argv = ["/bin/sh", "-c", "test -t 0 && echo tapdeck-\"doctor\" && exit 7"];
    let mut launch = Launch::new(CommandSpec::new(argv));
    (launch.headless, launch.size) = (true, Some(WinSize::cells(80, 24)));
    launch.timeout = Some(Duration::from_secs(10));
    let mut shown = None;
    let outcome = launch
        .run_with(None, |session| shown = Some((session.glass.clone(), session.handle.clone())))
        .outcome;
    let ended = match outcome {
        Ok(outcome) => outcome.exit,
        Err(e) => return (Verdict::Fails, e.to_string()),
    };
    let wrote = shown.is_some_and(|(glass, handle)| {
        glass.look(&handle).term().screen().next().is_some_and(|line| line.text().trim_end() == WORD)
    });
    if ended != Exit::Code(7) || !wrote {
        return (
            Verdict::Fails,
            format!("a shell on a terminal did not do as told: it ended with {ended:?}"),
        );
    }
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    match (number("/proc/sys/kernel/pty/nr"), number("/proc/sys/kernel/pty/max")) {
        (Some(used), Some(max)) if used.saturating_mul(10) > max.saturating_mul(9) => {
            (Verdict::Look, format!("run on terminals, but {used} of {max} are taken: see kernel.pty.max"))
        }
        (Some(used), Some(max)) => (Verdict::Fine, format!("run on terminals ({used} of {max} in use)")),
        _ => (Verdict::Fine, "run on terminals".into()),
    }
}

fn sockets() -> (Verdict, String) {
    let folder = match registry::folder() {
        Ok(folder) => folder,
        Err(e) => return (Verdict::Fails, format!("no place for the sockets of sessions: {e}")),
    };
    let own = registry::socket_path(&folder, &format!("doctor-{}", std::process::id()));
    match Door::unix(&own) {
        Ok(_) => (Verdict::Fine, format!("in {}, private", folder.display())),
        Err(e) => (Verdict::Fails, format!("none can be made in {}: {e}", folder.display())),
    }
}

/// The least free space for a long session.
const LITTLE_ROOM: u64 = 1_000_000_000;

fn recordings() -> (Verdict, String) {
    let folder = tapdeck_host::state_folder().join("recordings");
    let Some(there) = folder.ancestors().find(|f| f.is_dir()) else {
        return (Verdict::Fails, format!("{} cannot be made", folder.display()));
    };
    // The folder is not created here: a user who never records has none.
    if let Err(e) = tempfile::tempfile_in(there) {
        return (Verdict::Fails, format!("{} cannot be written to: {e}", there.display()));
    }
    let room = rustix::fs::statvfs(there).map(|s| s.f_bavail.saturating_mul(s.f_frsize));
    match room {
        Ok(room) if room < LITTLE_ROOM => {
            (Verdict::Look, format!("in {}, where only {} are left", folder.display(), human::bytes(room)))
        }
        Ok(room) => (Verdict::Fine, format!("in {}, {} left", folder.display(), human::bytes(room))),
        Err(e) => {
            (Verdict::Look, format!("in {}; how much room is left is not known: {e}", folder.display()))
        }
    }
}

fn settings() -> (Verdict, String) {
    match Config::load() {
        Ok(config) if config == Config::default() => (Verdict::Fine, "as usual".into()),
        Ok(config) => {
            let hook = config.hooks.on_state.first().map(PathBuf::from);
            match hook.filter(|program| found(program).is_none()) {
                Some(hook) => (Verdict::Look, format!("the hook {} is not to be found", hook.display())),
                None => (Verdict::Fine, "understood".into()),
            }
        }
        Err(e) => (Verdict::Fails, e.to_string()),
    }
}

fn rules() -> (Verdict, String) {
    let agents = match turns::load() {
        Ok(agents) => agents,
        Err(e) => return (Verdict::Fails, e.to_string()),
    };
    for name in agents.names() {
        if let Err(e) = agents.rules(name) {
            return (Verdict::Fails, e.to_string());
        }
    }
    (Verdict::Fine, format!("for {}", agents.names().join(", ")))
}

fn agents_here() -> (Verdict, String) {
    let known = turns::load().map(|a| a.names().into_iter().map(str::to_owned).collect::<Vec<_>>());
    let here: Vec<String> = known
        .unwrap_or_default()
        .iter()
        .filter(|name| !turns::PLAIN.contains(&name.as_str()))
        .filter_map(|name| Some(found(Path::new(name))?.display().to_string()))
        .collect();
    match here.len() {
        0 => (Verdict::Absent, "none that is known by name is in PATH".into()),
        _ => (Verdict::Fine, here.join(", ")),
    }
}

fn found(program: &Path) -> Option<PathBuf> {
    tapdeck_host::cassette::find_program(program.as_os_str(), None).ok()
}

fn sessions() -> (Verdict, String) {
    let listings = match alive() {
        Ok((_, listings)) => listings,
        Err(failure) => return (Verdict::Fails, failure.message().to_owned()),
    };
    let said = describe_all(&listings, "doctor");
    let mute = said.iter().filter(|s| s.status().is_none()).map(|s| s.about.id.as_str());
    let mute: Vec<&str> = mute.collect();
    match (listings.len(), mute.len()) {
        (0, _) => (Verdict::Fine, "none".into()),
        (n, 0) => (Verdict::Fine, format!("{n}, all of which answer")),
        (_, _) => {
            (Verdict::Look, format!("no answer from {}: stopped, perhaps, or very busy", mute.join(", ")))
        }
    }
}

/// The least number of descriptors for a server.
const FEW_FILES: u64 = 1024;

fn open_files() -> (Verdict, String) {
    let limit = getrlimit(Resource::Nofile);
    match limit.maximum {
        Some(most) if most < FEW_FILES => {
            (Verdict::Look, format!("at most {most} at a time: serve and broker may run out of them"))
        }
        Some(most) => (Verdict::Fine, format!("{most} at a time")),
        None => (Verdict::Fine, "any number".into()),
    }
}

#[cfg(feature = "net")]
fn tokens() -> (Verdict, String) {
    let tokens = tapdeck_serve::tokens::Tokens::at(tapdeck_serve::tokens::Tokens::default_path());
    let now = tapdeck_host::Clock::start().wall_start();
    match tokens.all() {
        Ok(all) if all.is_empty() => {
            (Verdict::Absent, "none: serve takes those of this machine alone".into())
        }
        Ok(all) => {
            let gone = all.iter().filter(|t| t.has_expired(now)).count();
            let verdict = if gone == all.len() { Verdict::Look } else { Verdict::Fine };
            (verdict, format!("{}, {gone} of them expired", all.len()))
        }
        Err(e) => (Verdict::Fails, e.to_string()),
    }
}

#[cfg(not(feature = "net"))]
fn tokens() -> (Verdict, String) {
    (Verdict::Absent, "this tapdeck does not serve".into())
}

#[cfg(feature = "docker")]
fn containers() -> (Verdict, String) {
    match tapdeck_host::backend::container_engine() {
        Ok(engine) => (Verdict::Fine, engine),
        Err(why) => (Verdict::Absent, why.to_string()),
    }
}

#[cfg(not(feature = "docker"))]
fn containers() -> (Verdict, String) {
    (Verdict::Absent, "this tapdeck knows none".into())
}

fn ssh_agent() -> (Verdict, String) {
    match std::env::var_os("SSH_AUTH_SOCK").filter(|v| !v.is_empty()).map(PathBuf::from) {
        None => {
            (Verdict::Absent, "no agent runs: key files are used, and their passphrases asked for".into())
        }
        Some(path) => match UnixStream::connect(&path) {
            Ok(_) => (Verdict::Fine, format!("the agent at {} answers", path.display())),
            Err(e) => (Verdict::Look, format!("the agent at {} does not answer: {e}", path.display())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales() {
        for yes in ["C.UTF-8", "de_DE.utf8", "en_GB.UTF-8@euro"] {
            assert!(is_utf8(yes), "{yes}");
        }
        for no in ["C", "POSIX", "de_DE", "de_DE.ISO-8859-1", "utf8"] {
            assert!(!is_utf8(no), "{no}");
        }
    }
}
