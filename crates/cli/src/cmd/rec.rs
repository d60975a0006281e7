//! `tapdeck rec`: a program on a terminal, recorded byte for byte.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tapdeck::scrub::{Owner, Rules, packs};
use tapdeck_host::{
    Clock, CreateError, IfExists, KeepInput, Launch, LiveIndex, Mended, RecordOptions, Recording,
    RecordingFile, Report, can_record, default_path,
};
use tapdeck_tape::{Container, Format};

use super::branch_points::{self, Form};
use super::convert::losses_text;
use super::doors::{DoorArgs, OpenDoors};
use super::verify::{meta, read_key};
use crate::ending::{Ending, code, say};
use crate::formats::{self, container_name};
use crate::input::InputArgs;
use crate::scrubbing::{Refused, ScrubArgs};
use crate::session_args::{SessionArgs, VariableArgs, hold_signals};
use crate::snapshot_door::{self, Ipc};
use crate::{detached_host, human, parse};

mod late;

/// What is settled, or has to be, where the session was started.
const NOT_LATE: [&str; 23] = [
    "append",
    "seal",
    "detach",
    "name",
    "command",
    "secret_env",
    "out_branch_points",
    "ipc",
    "export_session",
    "format",
    "index",
    "cwd",
    "no_pty",
    "headless",
    "window_size",
    "timeout",
    "env",
    "bus",
    "allow_remote",
    "token_file",
    "agent",
    "prompt",
    "on",
];

/// Record a session, byte for byte.
#[derive(Args)]
#[command(
    visible_alias = "record",
    after_help = "\
Ends as the program ends. The recording is safe to read at any moment, also after a crash: what was
on the screen for more than a quarter of a second is on disk.

A name that ends in .cast, .ttyrec, .typescript or .raw (.zst behind it compresses) records in that
format; a name that says nothing is an .ahr's, which alone carries everything.

Examples:
  tapdeck rec                            your shell, to the default folder
  tapdeck rec demo.ahr -- claude
  tapdeck rec -I demo.ahr -- bash        what is typed, too
  tapdeck rec demo.cast -- bash          for asciinema
  tapdeck rec --scrub demo.ahr -- bash   mask secrets before they reach the disk
  tapdeck rec --append demo.ahr -- make  go on with a recording
  tapdeck rec --seal seal.key demo.ahr   so that any change to it shows
  tapdeck rec --view demo.ahr -- claude  in the viewer, to search and to write instructions as it runs
  tapdeck rec --attach build late.ahr    a session that runs already, with its last minutes
  tapdeck rec --export-session demo.ahr  let tools within find the recorder, to announce snapshots"
)]
pub(crate) struct RecArgs {
    /// Where to; a file of its own under $XDG_STATE_HOME/tapdeck/recordings when left out
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Record what is typed as well, but for what the program has its terminal not show, such as passwords
    #[arg(short = 'I', long)]
    pub(crate) input: bool,
    /// With --input, record also what is not shown
    #[arg(long, requires = "input")]
    pub(crate) hidden_input: bool,
    /// Go on with an existing recording
    #[arg(long, conflicts_with = "overwrite")]
    append: bool,
    /// Replace an existing recording
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// How hard to compress, from 0 to 11
    #[arg(long, value_name = "Q", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=11))]
    pub(crate) brotli_q: u8,
    /// Where snapshots are announced: `auto`, `uds` (a private Unix socket), `tcp:HOST:PORT` or `off`
    #[arg(long, value_name = "DOOR", default_value = "auto", value_parser = Ipc::parse)]
    ipc: Ipc,
    /// Tell the program that it is recorded: set AH_RECORDER_IPC_SOCKET and TAPDECK_SESSION for it
    #[arg(long)]
    export_session: bool,
    /// The format to record in, if it is not the one that FILE's name says
    #[arg(long, value_name = "FORMAT", value_parser = formats::container)]
    format: Option<Container>,
    /// Seal the recording with the key in this file: see tapdeck verify --key
    #[arg(long, value_name = "KEYFILE", conflicts_with = "append")]
    seal: Option<PathBuf>,
    /// Write the index that lets the recording open anywhere: as it goes where that costs nothing, in `whole`
    /// to the very end however long that takes, or not at all
    #[arg(long, value_name = "auto|whole|off", default_value = "auto", value_parser = live_index)]
    index: LiveIndex,
    /// Mask secrets before they are written; `=PACK,…` chooses packs of rules: see tapdeck scrub
    #[arg(long, value_name = "PACK", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) scrub: Option<String>,
    /// With --scrub, mask the value of this environment variable wherever it is seen
    #[arg(long, value_name = "NAME", requires = "scrub")]
    secret_env: Vec<String>,
    /// Write the branch points to this file at the end; .json and .csv by name, Markdown otherwise
    #[arg(long, value_name = "FILE", value_parser = parse::file())]
    out_branch_points: Option<PathBuf>,
    /// A title for the recording
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Do not say at the end where the recording is
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    doors: DoorArgs,
    #[command(flatten)]
    variables: VariableArgs,
    /// Open the viewer instead of passing the program through: keys go to the program until Ctrl-], Enter goes
    /// back to it
    #[cfg(feature = "tui")]
    #[arg(long, conflicts_with_all = ["detach", "headless", "no_pty", "attach"])]
    view: bool,
    /// Record a live session that runs already, with the minutes that it still remembers
    #[arg(long, value_name = "SESSION", conflicts_with_all = NOT_LATE)]
    attach: Option<String>,
    /// The program and its arguments, after `--`; your shell when left out
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

impl RecArgs {
    /// Where the recording goes.
    pub(super) fn place(&self, program: &Path) -> Result<PathBuf, Ending> {
        self.file.clone().or_else(|| default_path(Clock::start(), program)).ok_or_else(|| {
            say(
                "this user has no home folder for recordings: name a file, or set XDG_STATE_HOME to a folder",
            );
            Ending::Code(code::USAGE)
        })
    }

    /// What is to be masked on the way to the disk.
    fn scrub_rules(&self, launch: &Launch) -> Result<Option<Arc<Rules>>, Refused> {
        let Some(list) = &self.scrub else { return Ok(None) };
        let cwd = launch.command.cwd.clone().or_else(|| std::env::current_dir().ok());
        let owner = Owner::of_process(cwd.map(|c| c.to_string_lossy().into_owned()));
        let args = ScrubArgs { secret_env: self.secret_env.clone(), ..ScrubArgs::default() };
        args.rules(&packs(std::slice::from_ref(list)), &owner).map(Some)
    }
}

fn live_index(text: &str) -> Result<LiveIndex, String> {
    Ok(match text {
        "auto" => LiveIndex::Auto,
        "whole" => LiveIndex::Whole,
        "off" => LiveIndex::Off,
        _ => return Err("write auto, whole or off".into()),
    })
}

pub(crate) fn run(args: &RecArgs) -> Ending {
    if let Some(session) = &args.attach {
        return late::run(args, session);
    }
    let mut launch = match args.session.launch(&args.command) {
        Ok(launch) => launch,
        Err(ending) => return ending,
    };
    args.variables.apply(&mut launch);
    #[cfg(feature = "tui")]
    if args.view && !args.doors.detached_host {
        return super::view::run_viewed(args.session.detached_size());
    }
    if args.doors.detach && !args.doors.detached_host {
        return detached_host::detach(args.session.detached_size());
    }
    if args.doors.detached_host {
        detached_host::prepare(&mut launch, &args.doors);
    }
    let seal = match args.seal.as_deref().map(read_key).transpose() {
        Ok(seal) => seal,
        Err((message, code)) => {
            say(message);
            return Ending::Code(code);
        }
    };
    let scrub = match args.scrub_rules(&launch) {
        Ok(rules) => rules,
        Err((message, code)) => {
            say(message);
            return Ending::Code(code);
        }
    };
    if let Some(list) = args.out_branch_points.as_deref().filter(|p| !args.overwrite && p.exists()) {
        say(format_args!("{} exists: give another name, or --overwrite", list.display()));
        return Ending::Code(code::USAGE);
    }
    let _held = match hold_signals() {
        Ok(held) => held,
        Err(ending) => return ending,
    };
    let file = match open(args, &launch) {
        Ok(file) => file,
        Err(ending) => return ending,
    };
    let container = file.container();
    let door = match args.ipc.open(file.path(), args.export_session) {
        Ok(door) => door,
        Err(ending) => {
            // Nothing was recorded: a file that was made for it would only be in the way of the next attempt.
            if !args.append && !args.overwrite {
                let _ = std::fs::remove_file(file.path());
            }
            return ending;
        }
    };
    let ipc = door.as_ref().map(|door| door.address().to_string());
    let doors = match args.doors.open(&launch, Some(file.path())) {
        Ok(doors) => doors,
        Err(ending) => return ending,
    };
    if args.export_session {
        launch.command.env.extend(snapshot_door::exports(doors.as_ref().map(OpenDoors::id), ipc.as_deref()));
    }
    let options = RecordOptions {
        quality: args.brotli_q,
        input: KeepInput::asked(args.input, args.hidden_input),
        argv: match launch.command.argv.as_slice() {
            [] => launch.shown_command().into_iter().map(Into::into).collect(),
            argv => argv.to_vec(),
        },
        cwd: launch.command.cwd.clone().or_else(|| std::env::current_dir().ok()),
        title: args.title.clone(),
        ipc,
        seal,
        index: args.index,
        scrub,
    };
    let finished = launch.run_with(Some(Recording { file, options }), |session| {
        let snapshots = snapshot_door::answer(door, session.handle.clone());
        (snapshots, doors.and_then(|d| d.serve(session)))
    });
    let mut ending = match &finished.outcome {
        Ok(outcome) => {
            args.session.comment_on(outcome);
            Ending::of(outcome)
        }
        Err(e) => {
            say(e);
            Ending::of_launch_error(e)
        }
    };
    if let Some(report) = &finished.report {
        if report.trouble.is_some() && ending == Ending::Code(0) {
            ending = Ending::Code(code::IO);
        }
        comment_on(report, container, args.quiet);
        if let Some(trouble) = &report.index_trouble {
            say(format_args!("the index could not be written: {trouble}"));
            if args.index == LiveIndex::Whole && ending == Ending::Code(0) {
                ending = Ending::Code(code::IO);
            }
        }
        if let Some(list) = &args.out_branch_points {
            let form = Form::of_path(list);
            let input = InputArgs { from: Some(container), timing: None };
            let written = branch_points::write_file(&report.path, &input, form, list, args.overwrite);
            if let Err((message, code)) = written {
                say(message);
                ending = if ending == Ending::Code(0) { Ending::Code(code) } else { ending };
            }
        }
    }
    ending
}

fn open(args: &RecArgs, launch: &Launch) -> Result<RecordingFile, Ending> {
    let shown = launch.shown_command();
    let program = Path::new(shown.first().map_or("", String::as_str));
    let path = args.place(program)?;
    if path.as_os_str() == "-" {
        say("a recording cannot go to standard output, which shows the session: name a file");
        return Err(Ending::Code(code::USAGE));
    }
    let named = path.file_name().and_then(|n| n.to_str()).and_then(Container::of_name);
    // What is no other format by its name is a native recording, whatever it is called.
    let container = args.format.or(named);
    let container = container.unwrap_or(Container { format: Format::Ahr, zst: false });
    let refuse = |message: String| {
        say(message);
        Err(Ending::Code(code::USAGE))
    };
    if !can_record(container.format) {
        let name = container_name(container);
        return refuse(format!("{name} cannot be recorded: record an .ahr, and see tapdeck convert"));
    }
    if container.format != Format::Ahr || container.zst {
        let name = container_name(container);
        if args.append || args.seal.is_some() {
            let what = if args.append { "continued" } else { "sealed" };
            return refuse(format!("{name} cannot be {what}: only an .ahr can"));
        }
        return RecordingFile::open_as(&path, container, args.overwrite).map_err(cannot_create);
    }
    if args.append && meta(&path).is_some_and(|m| m.seal.is_some()) {
        let path = path.display();
        return refuse(format!("{path} is sealed, which going on would break: give another name"));
    }
    let if_exists = match (args.append, args.overwrite) {
        (true, _) => IfExists::Append,
        (_, true) => IfExists::Overwrite,
        _ => IfExists::Refuse,
    };
    let file = RecordingFile::open(&path, if_exists).map_err(cannot_create)?;
    if let Some(Mended { records: 0, torn_bytes }) = file.mended() {
        let (path, torn) = (path.display(), human::bytes(torn_bytes));
        say(format_args!("{path} ended within a block of which nothing could be read; its {torn} are gone"));
    } else if let Some(mended) = file.mended() {
        say(format_args!(
            "{} ended within a block: the {} records that could be read of it are kept, the rest of its {} is gone",
            path.display(),
            mended.records,
            human::bytes(mended.torn_bytes)
        ));
    }
    Ok(file)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn cannot_create(e: CreateError) -> Ending {
    match &e {
        CreateError::Exists(_) => say(format_args!("{e}: give another name, or --append or --overwrite")),
        CreateError::Left(_) => {
            say(format_args!("{e}: give another name, move it away, or say --overwrite"));
        }
        _ => say(&e),
    }
    Ending::Code(if e.is_refusal() { code::USAGE } else { code::IO })
}

fn comment_on(report: &Report, container: Container, quiet: bool) {
    let path = report.path.display();
    if let Some(scrubbed) = report.scrubbed.as_ref().filter(|_| !quiet) {
        let found: Vec<String> = scrubbed
            .rules
            .iter()
            .filter(|r| r.hits() > 0)
            .map(|r| format!("{} {}", r.hits(), r.name))
            .collect();
        let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
        say(format_args!("masked on the way to the disk: {found}"));
    }
    if report.scrubbed.as_ref().is_some_and(|s| !s.is_clean()) {
        say(format_args!("not everything could be masked or looked at: see tapdeck scrub {path} --dry-run"));
    }
    let losses: Vec<_> = report.losses.iter().collect();
    if !losses.is_empty() && !quiet {
        say(format_args!("what {} cannot carry: {}", container_name(container), losses_text(&losses)));
    }
    match &report.trouble {
        Some(trouble) if report.lost_bytes > 0 => say(format_args!(
            "recording {path}: {trouble}; {} of the output are missing from it, {}",
            human::bytes(report.lost_bytes),
            match (report.whole, report.file_bytes) {
                (true, _) => "the rest is whole",
                (_, 0) => "and nothing is in it",
                _ => "and what is there has no proper end",
            }
        )),
        Some(trouble) => say(format_args!("recording {path}: {trouble}")),
        None if !quiet => say(format_args!(
            "recorded {} ({} of output, {} on disk) in {path}",
            human::duration(report.duration),
            human::bytes(report.output_bytes),
            human::bytes(report.file_bytes)
        )),
        None => {}
    }
}
