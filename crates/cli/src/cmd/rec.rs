//! `tapdeck rec`: a program on a terminal, recorded byte for byte.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tapdeck::scrub::{Owner, Rules, packs};
use tapdeck::trees::{Keeper, TreeRequests};
use tapdeck_core::withhold::SecretPrompts;
use tapdeck_host::{
    Clock, CreateError, IfExists, KeepInput, Launch, LiveIndex, Mended, OnFailure, RecordOptions, Recording,
    RecordingFile, Report, SyncLevel, recording_name, recordings_folder,
};
use tapdeck_tape::meta::Parent;
use tapdeck_tape::{Container, Format};

use super::branch_points::{self, Form};
use super::convert::losses_text;
use crate::config::{Alert, Config, Strict};
use crate::door_args::{DoorArgs, OpenDoors};
use crate::ending::{self, Ending, Kind, say};
use crate::failure::{Failure, Result};
use crate::formats;
use crate::health::meta;
use crate::input::InputArgs;
use crate::kept_files::{self, SnapshotsArg};
use crate::keys::recipients;
use crate::screen::rec_keys::RecKeys;
use crate::scrubbing::ScrubArgs;
use crate::seal_key::read_key;
use crate::session_args::{RecordedVariableArgs, SessionArgs, hold_signals};
use crate::shell_integration::{ShellIntegration, ShellIntegrationArgs};
use crate::snapshot_door::{self, Ipc};
use crate::{detached_host, human, parse};

mod late;

/// The options that only the command that starts a session can have.
const NOT_LATE: [&str; 32] = [
    "prefix",
    "append",
    "idle_time_limit",
    "seal",
    "detach",
    "name",
    "command",
    "secret_env",
    "rules",
    "out_branch_points",
    "ipc",
    "export_session",
    "format",
    "index",
    "sync",
    "strict",
    "alert",
    "cwd",
    "no_pty",
    "headless",
    "size",
    "timeout",
    "env",
    "shell_integration",
    "bus",
    "allow_remote",
    "token_file",
    "agent",
    "prompt",
    "on",
    "snapshots",
    "parent",
];

/// The format that carries everything.
const NATIVE: Container = Container { format: Format::Ahr, zst: false };

/// Record a session, byte for byte.
#[derive(Args, Clone)]
#[command(
    visible_alias = "record",
    after_help = "\
Exits with the program's exit code, or by the same signal. You can read the recording while it is
written. If the recorder is killed, at most the last 250 ms are lost; after a power failure, at most
the last 2 seconds. With --sync block it is 250 ms, but programs that write a lot are slower.

If the recording cannot be written, for instance on a full disk, the program goes on. tapdeck ls says
so at once, rec says so at the end and exits with 4 if the program succeeded. With --strict the program is ended or suspended
instead. In your terminal a suspended program goes on with fg, detached with tapdeck kill --signal
CONT SESSION.

The extension selects the format: .ahr, .cast, .ttyrec, .typescript or .raw, each also with .zst
compression. A name without an extension means .ahr, the only format that keeps everything.

Examples:
  tapdeck rec                            record your shell to the default folder
  tapdeck rec demo.ahr -- claude
  tapdeck rec -I demo.ahr -- bash        record keyboard input, too
  tapdeck rec demo.cast -- bash          for asciinema
  tapdeck rec --scrub demo.ahr -- bash   mask secrets before they reach the disk
  tapdeck rec --append demo.ahr -- make  append to a recording
  tapdeck rec --env LANG --tag ticket=7  note the language and a ticket
  tapdeck rec --seal seal.key demo.ahr   make later changes detectable
  tapdeck rec --encrypt age1… demo.ahr   let only the owner of that key read it
  tapdeck rec --view demo.ahr -- claude  in the viewer, to search and annotate while it runs
  tapdeck rec --attach build late.ahr    record a session that is already running
  tapdeck rec --export-session demo.ahr  let programs in the session add snapshots
  tapdeck rec --snapshots git -- claude  keep the files at every turn, to branch from there"
)]
pub(crate) struct RecArgs {
    /// The recording to write [default: a new file in the recordings folder; see tapdeck config]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Record keyboard input too, except passwords and other secrets
    ///
    /// Input is left out while the terminal does not echo it, while the program draws a mask such
    /// as `*` for it, and on a line where the screen asks for a password, PIN, token or key. The
    /// recording notes how much was left out. `[rec]` in the configuration adds patterns for such
    /// requests.
    #[arg(short = 'I', long)]
    input: bool,
    /// Do not record keyboard input; overrides the configuration
    #[arg(long, conflicts_with = "input", hide_short_help = true)]
    no_input: bool,
    /// With --input, record everything, passwords too
    #[arg(long, hide_short_help = true)]
    hidden_input: bool,
    /// Append to an existing recording
    #[arg(long, conflicts_with = "overwrite")]
    append: bool,
    /// Replace an existing recording
    #[arg(long)]
    overwrite: bool,
    /// Also write NAME.meta.json and other sidecars, for tools that want files
    #[arg(long, conflicts_with_all = ["encrypt", "attach"], hide_short_help = true)]
    sidecar: bool,
    /// Brotli compression level, from 0 to 11
    #[arg(long, value_name = "Q", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=11), hide_short_help = true)]
    brotli_q: u8,
    /// Where to accept snapshots: `auto`, `uds` (a private Unix socket), `tcp:HOST:PORT` or `off`
    #[arg(long, value_name = "DOOR", default_value = "auto", value_parser = Ipc::parse, hide_short_help = true)]
    ipc: Ipc,
    /// Set AH_RECORDER_IPC_SOCKET and TAPDECK_SESSION in the program's environment
    #[arg(long, hide_short_help = true)]
    export_session: bool,
    /// Recording format [default: from FILE's extension]
    #[arg(long, value_name = "FORMAT", value_parser = formats::container, hide_short_help = true)]
    format: Option<Container>,
    /// Seal the recording with the key in this file; see tapdeck verify --key
    #[arg(long, value_name = "KEYFILE", conflicts_with = "append", hide_short_help = true)]
    seal: Option<PathBuf>,
    /// Encrypt the recording to this public key of age (`age1…`), or to those in a file; repeatable
    ///
    /// Only the identities behind these keys can read the recording: give one with `--identity` to
    /// any command that reads recordings.
    #[arg(long, value_name = "RECIPIENT", hide_short_help = true)]
    encrypt: Vec<String>,
    /// Write an index for fast seeking: `auto` while recording if it costs nothing, `whole` to the
    /// end however long that takes, or `off`
    #[arg(long, value_name = "auto|whole|off", default_value = "auto", value_parser = live_index, hide_short_help = true)]
    index: LiveIndex,
    /// When to sync to disk before the end: one second after a write, with every block, or never
    #[arg(long, value_name = "interval|block|none", default_value = "interval", value_parser = sync_level, hide_short_help = true)]
    sync: SyncLevel,
    /// Mask secrets before they are written; `=PACK,…` selects rule packs; see tapdeck scrub
    #[arg(long, value_name = "PACK", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    scrub: Option<String>,
    /// With --scrub, mask by the rules in this TOML file, too; repeatable
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    rules: Vec<PathBuf>,
    /// Do not mask secrets; overrides the configuration
    #[arg(long, conflicts_with = "scrub", hide_short_help = true)]
    no_scrub: bool,
    /// With --scrub, mask the value of this environment variable
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    secret_env: Vec<String>,
    /// If the recording fails, end the program, or suspend it with `=stop`; `=off` overrides the
    /// configuration
    #[arg(long, value_name = "end|stop|off", num_args = 0..=1, require_equals = true, default_missing_value = "end", hide_possible_values = true, hide_short_help = true)]
    strict: Option<Strict>,
    /// If the recording fails, tell your terminal at once: `bell`, `title`, `both` or `none`
    #[arg(long, value_name = "HOW", hide_possible_values = true, hide_short_help = true)]
    alert: Option<Alert>,
    /// At the end, write the branch points to this file: .json, .csv, otherwise Markdown
    #[arg(long, value_name = "FILE", value_parser = parse::file(), hide_short_help = true)]
    out_branch_points: Option<PathBuf>,
    /// Title of the recording
    #[arg(long, value_name = "TEXT", value_parser = parse::line, hide_short_help = true)]
    title: Option<String>,
    /// Tag of the recording, such as `ticket=1234` or `keep`; repeatable
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse::tag, hide_short_help = true)]
    tag: Vec<(String, String)>,
    /// Note that this recording continues an earlier one, such as that of an agent before a restart
    #[arg(long, value_name = "FILE", conflicts_with = "append", hide_short_help = true)]
    continues: Option<PathBuf>,
    /// Keep the files at the end of every turn: `git`, `command` for the one in the configuration,
    /// a command line of your own, or `off`; see tapdeck branch
    ///
    /// With `git`, the working tree around the program's folder becomes a commit below
    /// `refs/tapdeck`. Untracked files are in it, ignored files are not. Your branches, index,
    /// stash and files stay as they are.
    #[arg(long, value_name = "git|CMD|off", value_parser = SnapshotsArg::parse, hide_short_help = true)]
    snapshots: Option<SnapshotsArg>,
    /// The recording that this session is branched from, as JSON
    #[arg(long, value_name = "JSON", hide = true, value_parser = branch_parent)]
    parent: Option<Parent>,
    /// Longest pause when the recording is played; the recording itself keeps the full pauses
    #[arg(short, long, value_name = "TIME", value_parser = parse::duration, hide_short_help = true)]
    idle_time_limit: Option<Duration>,
    /// Keys for the recording behind this one, such as `C-\`: `m` adds a marker, `p` pauses and
    /// goes on, `?` shows them [default: none; every key is the program's]
    ///
    /// Typed twice, the key goes to the program. `none` overrides the configuration.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["detach", "headless", "no_pty"], hide_short_help = true)]
    prefix: Option<String>,
    /// Do not print the path of the recording, nor the final screen of --headless
    #[arg(short, long, hide_short_help = true)]
    quiet: bool,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    doors: DoorArgs,
    #[command(flatten)]
    variables: RecordedVariableArgs,
    #[command(flatten)]
    shell: ShellIntegrationArgs,
    /// Show the program in the viewer; Ctrl-] switches to the viewer's keys, Enter back to the
    /// program
    #[cfg(feature = "tui")]
    #[arg(long, conflicts_with_all = ["detach", "headless", "no_pty", "attach"])]
    view: bool,
    /// Record a session that is already running, including the output it still has in memory
    #[arg(long, value_name = "SESSION", conflicts_with_all = NOT_LATE)]
    attach: Option<String>,
    /// The program and its arguments, after `--` [default: your shell]
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

impl RecArgs {
    /// The arguments with what the configuration says where they are silent.
    fn configured(&self) -> Result<Self> {
        let config = Config::load()?.rec;
        let mut args = self.clone();
        args.input |= config.input && !args.no_input;
        args.idle_time_limit = args.idle_time_limit.or(config.idle_limit.0);
        args.strict = args.strict.or(Some(config.strict));
        args.alert = args.alert.or(Some(config.alert));
        if config.scrub && !args.no_scrub {
            args.scrub.get_or_insert_default();
        }
        if !config.seal.is_empty() && !args.append && args.attach.is_none() && args.seal.is_none() {
            match args.container(args.file.as_deref().unwrap_or(Path::new(&config.name)))? {
                NATIVE => args.seal = Some(parse::home_path(&config.seal)),
                container => say(format_args!("{container} cannot be sealed: only an .ahr can")),
            }
        }
        if args.encrypt.is_empty() && !config.encrypt.is_empty() {
            match args.container(args.file.as_deref().unwrap_or(Path::new(&config.name)))? {
                NATIVE => args.encrypt = config.encrypt,
                // What is to be encrypted must not be written in the clear.
                container => {
                    return Err(Failure::usage(format!(
                        "{container} cannot be encrypted, as `rec.encrypt` in the configuration asks: only an .ahr can"
                    )));
                }
            }
        }
        let prefix = args.prefix.take().unwrap_or(config.prefix);
        args.prefix = Some(prefix).filter(|key| !matches!(&**key, "" | "none"));
        if let Some(prefix) = &args.prefix {
            RecKeys::behind(prefix).map_err(|e| Failure::usage(format!("the prefix {prefix:?}: {e}")))?;
        }
        if !args.encrypt.is_empty() && args.index == LiveIndex::Whole {
            return Err(Failure::usage(
                "--index whole would keep screens of an encrypted recording in the clear",
            ));
        }
        if !args.encrypt.is_empty() && args.out_branch_points.is_some() {
            return Err(Failure::usage(
                "--out-branch-points cannot read an encrypted recording: use tapdeck branch-points --identity FILE",
            ));
        }
        if args.hidden_input && !args.input {
            return Err(Failure::usage("--hidden-input records more than --input does: say that, too"));
        }
        if !args.secret_env.is_empty() && args.scrub.is_none() {
            return Err(Failure::usage("--secret-env says what to mask: say --scrub, too"));
        }
        if !args.rules.is_empty() && args.scrub.is_none() {
            return Err(Failure::usage("--rules says what to mask: say --scrub, too"));
        }
        Ok(args)
    }

    /// The file of the recording.
    fn place(&self, program: &Path) -> Result<PathBuf> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => new_recording(program),
        }
    }

    /// The format of the recording: that of `--format`, or the one that the file's name says.
    fn container(&self, path: &Path) -> Result<Container> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match formats::recorded(&name, self.format) {
            Ok(container) => Ok(container.unwrap_or(NATIVE)),
            // It says itself what it is, or its name was made from that of a program.
            Err(_) if self.format.is_none() && (self.append || self.file.is_none()) => Ok(NATIVE),
            Err(why) => Err(Failure::usage(format!("cannot record {}: {why}", path.display()))),
        }
    }

    /// The options of the recording that follow from the arguments alone.
    fn options(&self, launch: &Launch) -> RecordOptions {
        RecordOptions::default()
            .quality(self.brotli_q)
            .input(KeepInput::asked(self.input, self.hidden_input))
            .argv(match launch.command.argv.as_slice() {
                [] => launch.shown_command().into_iter().map(Into::into).collect(),
                argv => argv.to_vec(),
            })
            .cwd(launch.command.cwd.clone().or_else(|| std::env::current_dir().ok()))
            .title(self.title.clone())
            .tags(self.tag.clone())
            .env(self.variables.recorded(launch.place.is_local()))
            .continues(self.continues.as_ref().map(|path| {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                path.to_string_lossy().into_owned()
            }))
            .parent(self.parent.clone())
            .idle_limit(self.idle_time_limit)
            .index(self.index)
            .sync(self.sync)
            .sidecars(self.sidecar)
            .on_failure(
                OnFailure::default()
                    .action(self.strict.unwrap_or(Strict::Off).action())
                    .bell(matches!(self.alert, Some(Alert::Bell | Alert::Both)))
                    .title(matches!(self.alert, Some(Alert::Title | Alert::Both))),
            )
    }

    /// The rules by which secrets are masked before they are written.
    fn scrub_rules(&self, launch: &Launch) -> Result<Option<Arc<Rules>>> {
        let Some(list) = &self.scrub else { return Ok(None) };
        let cwd = launch.command.cwd.clone().or_else(|| std::env::current_dir().ok());
        let owner = Owner::of_process(cwd.map(|c| c.to_string_lossy().into_owned()));
        let args = ScrubArgs {
            rules: self.rules.clone(),
            secret_env: self.secret_env.clone(),
            ..ScrubArgs::default()
        };
        args.rules(&packs(std::slice::from_ref(list)), &owner).map(Some)
    }
}

fn branch_parent(text: &str) -> Result<Parent, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn live_index(text: &str) -> Result<LiveIndex, String> {
    Ok(match text {
        "auto" => LiveIndex::Auto,
        "whole" => LiveIndex::Whole,
        "off" => LiveIndex::Off,
        _ => return Err("write auto, whole or off".into()),
    })
}

fn sync_level(text: &str) -> Result<SyncLevel, String> {
    Ok(match text {
        "interval" => SyncLevel::Interval,
        "block" => SyncLevel::Block,
        "none" => SyncLevel::None,
        _ => return Err("write interval, block or none".into()),
    })
}

pub(crate) fn run(args: &RecArgs) -> Result {
    let args = &args.configured()?;
    if let Some(session) = &args.attach {
        return late::run(args, session);
    }
    let mut launch = args.session.launch(&args.command)?;
    args.variables.apply(&mut launch);
    let shell = args.shell.prepare(&launch)?;
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
    record(args, launch, shell.as_ref())
}

/// Runs the program and records it.
fn record(args: &RecArgs, mut launch: Launch, shell: Option<&ShellIntegration>) -> Result {
    let seal = args.seal.as_deref().map(read_key).transpose()?;
    let encrypt = recipients(&args.encrypt)?;
    let scrub = args.scrub_rules(&launch)?;
    if let Some(list) = args.out_branch_points.as_deref().filter(|p| !args.overwrite && p.exists()) {
        let list = list.display();
        return Err(Failure::usage(format!("{list} exists: give another name, or --overwrite")));
    }
    if let Some(list) = &args.out_branch_points
        && list.parent().is_some_and(|f| !f.as_os_str().is_empty() && !f.exists())
    {
        // Said before the program runs, and not after it.
        return Err(Failure::write(list, &std::io::ErrorKind::NotFound.into()));
    }
    let plan = kept_files::plan(args.snapshots.as_ref(), &launch)?;
    let _held = hold_signals()?;
    let file = open(args, &launch)?;
    let container = file.container();
    let keeper = plan.filter(|_| container == NATIVE).map(|plan| plan.begin(file.path())).transpose()?;
    if args.snapshots.is_some() && keeper.is_none() && container != NATIVE {
        say(format_args!("{container} cannot carry snapshots, so no files are kept: only an .ahr can"));
    }
    let door = args.ipc.open(args.export_session)?;
    let ipc = door.as_ref().map(|door| door.address().to_string());
    let requests = keeper.as_ref().map(Keeper::requests);
    let on_turn = requests.as_ref().map(TreeRequests::on_turn);
    let doors = args.doors.open(&launch, Some(file.path()), on_turn)?;
    if args.export_session {
        launch.command.env.extend(snapshot_door::exports(doors.as_ref().map(OpenDoors::id), ipc.as_deref()));
    }
    let config = Config::load()?.rec;
    let prompts = SecretPrompts::new(&config.secret_prompts, &config.ignored_prompts);
    let prompts = Arc::new(prompts.map_err(Failure::usage)?);
    let options =
        args.options(&launch).ipc(ipc).seal(seal).encrypt(encrypt).scrub(scrub).secret_prompts(prompts);
    if let Some(shell) = shell {
        shell.apply(&mut launch);
    }
    let keys = args.prefix.as_deref().map(RecKeys::behind).transpose().map_err(Failure::usage)?;
    let (mut screen, mut keeping) = (None, None);
    let finished = launch.run_with(Some(Recording { file, options }), |session| {
        if let Some(keys) = keys {
            session.handle.intercept_keys(keys);
        }
        screen = args.session.final_screen(&session, args.quiet, args.doors.detached_host);
        keeping = keeper.map(|keeper| keeper.start(&session));
        let snapshots = snapshot_door::answer(door, session.handle.clone(), requests);
        (snapshots, doors.and_then(|d| d.serve(session)))
    });
    let ending = match finished.outcome {
        Ok(outcome) => {
            if let Some(screen) = screen {
                screen.print();
            }
            args.session.comment_on(&outcome);
            Ending::of(&outcome)
        }
        // The recording is reported even if the session broke down.
        Err(e) => Failure::from(e).report(ending::Report::Text),
    };
    match keeping {
        Some(Ok(keeping)) => {
            keeping.troubles().iter().for_each(|why| say(format_args!("keeping the files: {why}")));
        }
        Some(Err(e)) => say(format_args!("the files could not be kept: {e}")),
        None => {}
    }
    Ok(match &finished.report {
        Some(report) => finish(args, container, report, ending),
        None => ending,
    })
}

/// Reports on the recording, and writes the branch points. Returns how the command ends: as the
/// program, but not with success if the recording failed.
fn finish(args: &RecArgs, container: Container, report: &Report, mut ending: Ending) -> Ending {
    if report.trouble.is_some() {
        ending = ending.or_failed(Kind::Io);
    }
    comment_on(report, container, args.quiet);
    if let Some(trouble) = &report.index_trouble {
        say(format_args!("the index could not be written: {trouble}"));
        if args.index == LiveIndex::Whole {
            ending = ending.or_failed(Kind::Io);
        }
    }
    if let Some(list) = &args.out_branch_points {
        let input = InputArgs { from: Some(container), ..InputArgs::default() };
        let form = Form::of_path(list);
        if let Err(failure) = branch_points::write_file(&report.path, &input, form, list, args.overwrite) {
            ending = ending.or_failed(failure.kind());
            failure.report(ending::Report::Text);
        }
    }
    ending
}

/// Opens the file of the recording, in the format that its name or `--format` says.
fn open(args: &RecArgs, launch: &Launch) -> Result<RecordingFile> {
    let shown = launch.shown_command();
    let program = Path::new(shown.first().map_or("", String::as_str));
    let path = args.place(program)?;
    if path.as_os_str() == "-" {
        return Err(Failure::usage(
            "a recording cannot go to standard output, which shows the session: name a file",
        ));
    }
    let container = args.container(&path)?;
    if container != NATIVE {
        if args.append || args.seal.is_some() || !args.encrypt.is_empty() {
            let what = match (args.append, args.seal.is_some()) {
                (true, _) => "continued",
                (_, true) => "sealed",
                _ => "encrypted",
            };
            return Err(Failure::usage(format!("{container} cannot be {what}: only an .ahr can")));
        }
        return RecordingFile::open_as(&path, container, args.overwrite).map_err(cannot_create);
    }
    if args.append && meta(&path).is_some_and(|m| m.seal.is_some()) {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path} is sealed, which going on would break: give another name"
        )));
    }
    let if_exists = match (args.append, args.overwrite) {
        (true, _) => IfExists::Append,
        (_, true) => IfExists::Overwrite,
        _ => IfExists::Refuse,
    };
    let file = RecordingFile::open(&path, if_exists).map_err(cannot_create)?;
    let path = path.display();
    match (file.continues_encrypted(), args.encrypt.is_empty()) {
        (Some(true), true) => {
            return Err(Failure::usage(format!(
                "{path} is encrypted: continue it with --encrypt and the public key of its readers"
            )));
        }
        (Some(false), false) => {
            return Err(Failure::usage(format!(
                "{path} is not encrypted, and cannot become so: record to another file"
            )));
        }
        _ => {}
    }
    comment_on_mended(file.path(), file.mended());
    Ok(file)
}

/// Returns the file of a new recording of this program in the folder of recordings, which is made.
pub(super) fn new_recording(program: &Path) -> Result<PathBuf> {
    let config = Config::load()?.rec;
    let folder = match config.folder.as_str() {
        "" => recordings_folder(),
        folder => Some(parse::home_path(folder)),
    };
    let folder = folder.ok_or_else(|| {
        Failure::usage(
            "this user has no home folder for recordings: name a file, or set XDG_STATE_HOME to a folder",
        )
    })?;
    // The folder of recordings is made; a folder on the command line must be there.
    tapdeck_host::disk::create_folders(&folder).map_err(|e| Failure::write(&folder, &e))?;
    let about = folder.metadata()?;
    if config.folder.is_empty() && about.mode() & 0o077 != 0 {
        // The folder is Tapdeck's own, whatever umask it was made with.
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&folder, private).map_err(|e| Failure::write(&folder, &e))?;
    }
    Ok(folder.join(recording_name(&config.name, Clock::start(), program)))
}

/// Prints what became of a block that was cut off, in a recording that is continued.
fn comment_on_mended(path: &Path, mended: Option<Mended>) {
    let Some(Mended { records, torn_bytes }) = mended else { return };
    let (path, torn) = (path.display(), human::bytes(torn_bytes));
    match records {
        0 => say(format_args!(
            "{path} ended within a block of which nothing could be read; its {torn} are gone"
        )),
        _ => say(format_args!(
            "{path} ended within a block; kept what could be read, {}; the rest of its {torn} is gone",
            human::count(records, "record")
        )),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn cannot_create(e: CreateError) -> Failure {
    let message = match &e {
        CreateError::Exists(_) => format!("{e}: give another name, or --append or --overwrite"),
        CreateError::Left(_) => format!("{e}: give another name, move it away, or say --overwrite"),
        CreateError::NoFolder { .. } => format!("{e}; create it first"),
        _ => e.to_string(),
    };
    Failure::new(if e.is_refusal() { Kind::Usage } else { Kind::Io }, message)
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
        say(format_args!("what {container} cannot carry: {}", losses_text(&losses)));
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
