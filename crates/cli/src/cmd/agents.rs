//! `tapdeck agents`: the rules by which agents are judged, and new ones from watching a session.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tapdeck::{OutFile, paths, turns};
use tapdeck_host::Clock;
use tapdeck_proto::bus::{Info, InfoWanted, Push, Role, Sub};
use tapdeck_serve::client::{ANSWER, Bus};
use tapdeck_tape::agents::{builtin, command_name};
use tapdeck_tape::learn::{Learned, Sample, learn};

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::parse;
use crate::sessions::{connect, find};

/// List the rules for agents, print one, or learn new ones from a session.
#[derive(Args)]
#[command(after_help = "\
Rules tell Tapdeck what an agent's screen means. Your own are TOML files in the folder agents beside
the configuration file; one with the name of built-in rules replaces them.

Examples:
  tapdeck agents
  tapdeck agents show claude
  tapdeck agents new mybot bot --watch 60s")]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Subcommand)]
enum What {
    /// List the rules and the commands they are for
    List,
    /// Print the rules of an agent
    Show(ShowArgs),
    /// Watch a session and write rules for its program
    New(NewArgs),
}

#[derive(Args)]
struct ShowArgs {
    /// The name of the rules
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Args)]
#[command(after_help = "\
Submit a prompt or two while Tapdeck watches, and let the program answer. Tapdeck looks for a prompt
in front of the cursor, or for an input field, and compares the screen at work with the screen at
rest. It writes the rules to the folder of your rules, and beside them NAME.golden.json: the output
that it saw, with times. Check the rules, and correct them. Sessions started later use them. If
something was not seen, nothing is written: the command prints what it has, and exits with 1.")]
struct NewArgs {
    /// The name of the new rules
    #[arg(value_name = "NAME")]
    name: String,
    /// Id or name of a live session, or a unique prefix
    #[arg(value_name = "SESSION")]
    session: String,
    /// How long to watch
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse::duration)]
    watch: Duration,
    /// Replace existing rules of this name
    #[arg(long)]
    overwrite: bool,
}

/// How often the screen is looked at, and the most output that the golden has.
const LOOK: Duration = Duration::from_millis(120);
const GOLDEN: usize = 4 << 20;

pub(crate) fn run(args: &AgentsArgs) -> Result {
    match &args.what {
        None | Some(What::List) => list(args.json),
        Some(What::Show(show)) => {
            let own = turns::own_file(&show.name)?;
            let text = own.or_else(|| builtin(&show.name).map(str::to_owned));
            let none = || {
                let known = turns::load().map(|agents| agents.names().join(", ")).unwrap_or_default();
                Failure::not_found(format!("there are no rules for {:?}: {known}", show.name))
            };
            print(format_args!("{}", text.ok_or_else(none)?));
            Ok(Ending::Done)
        }
        Some(What::New(new)) => learn_rules(new, args.json),
    }
}

fn list(as_json: bool) -> Result {
    let agents = turns::load()?;
    let mut all = Vec::new();
    for name in agents.names() {
        let (commands, own) = (agents.commands(name), turns::own_file(name)?.is_some());
        all.push(json!({"name": name, "commands": commands, "own": own}));
        if !as_json {
            let own = if own { "  (your own)" } else { "" };
            print(format_args!("{name:<12} {}{own}\n", commands.join(", ")));
        }
    }
    if as_json {
        print_json(&all);
    }
    Ok(Ending::Done)
}

fn learn_rules(args: &NewArgs, as_json: bool) -> Result {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if args.name.is_empty() || !args.name.chars().all(is_name) {
        let why = "a name of rules has only letters, digits, - and _";
        return Err(Failure::usage(format!("{:?}: {why}", args.name)));
    }
    let folder =
        paths::config_folder().ok_or_else(|| Failure::usage("there is no folder for configuration"))?;
    let path = folder.join("agents").join(format!("{}.toml", args.name));
    if path.exists() && !args.overwrite {
        return Err(Failure::usage(format!("{}: exists; --overwrite replaces it", path.display())));
    }
    let listing = find(Some(&args.session))?;
    // Rules for an interpreter or a shell would be rules for all of its programs.
    let command = command_name(&listing.command);
    let guessed = command.is_none();
    let command = command.unwrap_or_else(|| args.name.clone());
    let mut bus = connect(&listing, "agents", Role::Observer)?;
    if !as_json {
        say(format_args!(
            "watching {} for {:?}: submit a prompt, and let it answer",
            args.session, args.watch
        ));
    }
    let Watched { samples, golden } = watch(&mut bus, args.watch)?;
    let learned = learn(&args.name, &command, &samples);
    let never = "the program was never at rest, so nothing can be learned: watch it for longer (--watch)";
    let Learned { rules, mut found, missing } = learned.ok_or_else(|| Failure::check(never))?;
    found.insert(
        0,
        match guessed {
            true => {
                format!("the rules are for the command {command}: a guess, because the session runs a shell")
            }
            false => format!("the rules are for the command {command}"),
        },
    );
    if !missing.is_empty() {
        print(format_args!("{rules}"));
        return Err(Failure::check(format!("nothing was written: {}", missing.join("; "))));
    }
    let written = write(&path, &rules, args.overwrite)?;
    let golden_path = path.with_extension("golden.json");
    write(&golden_path, &golden.to_string(), true)?;
    if as_json {
        print_json(
            &json!({"rules": written, "golden": golden_path, "looks": samples.len(), "command": command, "found": found}),
        );
    } else {
        for line in found {
            say(line);
        }
        print(format_args!("{}\n{}\n", written.display(), golden_path.display()));
    }
    Ok(Ending::Done)
}

struct Watched {
    samples: Vec<Sample>,
    golden: serde_json::Value,
}

/// Looks at the session for a while, and notes what its program writes.
fn watch(bus: &mut Bus, time: Duration) -> Result<Watched> {
    let clock = Clock::start();
    bus.request(&Sub { looks: false, max_fps: Some(1), ..Sub::default() }, ANSWER)?;
    let mut samples = Vec::new();
    let mut events = Vec::new();
    let mut noted = 0;
    let mut size = (0, 0);
    while clock.elapsed() < time {
        let info = bus.request(&InfoWanted::Full, ANSWER)?;
        if info.status.done {
            break;
        }
        if events.is_empty() {
            size = (info.status.cols, info.status.rows_n);
            events.push(json!([0, "o", painted(&info)]));
        }
        samples.extend(sample(info));
        let next = clock.elapsed() + LOOK;
        while let Some(left) = next.checked_sub(clock.elapsed()) {
            let Some(frame) = bus.next(Some(left))? else { continue };
            if let Some(Push::Out(output)) = frame.push()
                && noted < GOLDEN
            {
                noted += output.len();
                let text = String::from_utf8_lossy(&output).into_owned();
                events.push(json!([
                    u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX),
                    "o",
                    text
                ]));
            }
        }
    }
    let golden = json!({"cols": size.0, "rows": size.1, "events": events});
    Ok(Watched { samples, golden })
}

/// The screen as output: text and cursor.
fn painted(info: &Info) -> String {
    let Some(contents) = &info.contents else { return String::new() };
    let rows = contents.rows.join("\r\n");
    format!("\x1b[H\x1b[2J{rows}\x1b[{};{}H", contents.cy + 1, contents.cx + 1)
}

fn sample(info: Info) -> Option<Sample> {
    let contents = info.contents?;
    Some(Sample {
        pastes: contents.modes.iter().any(|mode| mode == "?2004"),
        rows: contents.rows,
        cursor_row: usize::from(contents.cy),
        cursor_col: usize::from(contents.cx),
        alternate: contents.alternate,
        title: info.status.title,
        quiet: Duration::from_millis(info.status.idle_ms),
    })
}

fn write(path: &Path, text: &str, overwrite: bool) -> Result<PathBuf> {
    let failed = |e: &dyn std::fmt::Display| Failure::io(format!("cannot write {}: {e}", path.display()));
    if let Some(folder) = path.parent() {
        tapdeck_host::disk::create_folders(folder).map_err(|e| failed(&e))?;
    }
    let mut out = OutFile::create(path, overwrite).map_err(|e| failed(&e))?;
    out.write_all(text.as_bytes()).and_then(|()| out.commit()).map_err(|e| failed(&e))?;
    Ok(path.to_owned())
}
