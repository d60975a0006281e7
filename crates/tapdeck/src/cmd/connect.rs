//! `tapdeck connect`: a program on another machine, or another user's side of this one, as if it ran here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::termios::isatty;
use tapdeck_core::WinSize;
use tapdeck_host::backend::{Backend, CommandSpec};
use tapdeck_host::{Launch, LaunchError, terminal_size};
use tapdeck_serve::client::{Conn, FarProgram};
use tapdeck_serve::wire::{Tty, Wanted};

use super::sessions::Failed;
use crate::ending::{Ending, code, print, say};
use crate::parse;

/// Run a program at a server, as if it ran here.
#[derive(Args)]
#[command(after_help = "\
Ends as the program ends. With a terminal here the program gets one there; without, or with --no-pty, it
runs on pipes, with standard output and error apart. It ends when this command has gone, unless it was
started with --detach.

Examples:
  tapdeck connect unix:/run/user/1000/tty.sock
  tapdeck connect unix:/run/user/1000/tty.sock --no-pty -- cargo test
  tapdeck connect unix:/run/user/1000/tty.sock -d --name build -- make
  tapdeck connect unix:/run/user/1000/tty.sock --cwd /srv --env DEBUG=1 -- ./deploy")]
pub(crate) struct ConnectArgs {
    /// Where the server listens: unix:PATH
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Run on pipes, with standard output and error apart
    #[arg(long, conflicts_with = "pty")]
    no_pty: bool,
    /// Run on a terminal even if there is none here
    #[arg(short = 't', long)]
    pty: bool,
    /// Start it, print its session's id, and leave it running
    #[arg(short, long)]
    detach: bool,
    /// A name for the session
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Run in this folder of the server's
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<String>,
    /// Set a variable for the program
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse::variable)]
    env: Vec<(String, Option<OsString>)>,
    /// Where the server is to run it: local, or a place as run --on has it
    #[arg(long, alias = "on", value_name = "BACKEND", default_value = "local")]
    backend: String,
    /// Size of the program's terminal, if not yours
    #[arg(long, value_name = "COLSxROWS", value_parser = parse::size)]
    window_size: Option<WinSize>,
    /// The program and its arguments; the shell of the server's user when left out
    #[arg(value_name = "CMD", last = true)]
    command: Vec<String>,
}

pub(crate) fn run(args: &ConnectArgs) -> Ending {
    if args.detach { detach(args).unwrap_or_else(Failed::end) } else { drive(args) }
}

impl ConnectArgs {
    fn has_terminal(&self) -> bool {
        self.pty || (!self.no_pty && isatty(rustix::stdio::stdin()))
    }

    /// The variables to set there; those named without a value as they are here.
    fn variables(&self) -> Vec<(String, String)> {
        let value = |(name, value): &(String, Option<OsString>)| {
            let value = value.clone().or_else(|| std::env::var_os(name))?;
            Some((name.clone(), value.to_string_lossy().into_owned()))
        };
        self.env.iter().filter_map(value).collect()
    }

    fn wanted(&self, size: WinSize, typed: bool) -> Wanted {
        let tty = self.has_terminal().then(|| Tty {
            term: std::env::var("TERM").ok().filter(|t| !t.is_empty()),
            size,
            // Where nobody types, piped input would be shown twice.
            echo: typed,
            answers: !self.detach,
        });
        Wanted {
            backend: self.backend.clone(),
            token: None,
            tty,
            cmd: self.command.clone(),
            cwd: self.cwd.clone(),
            env: self.variables(),
            name: self.name.clone(),
            detached: self.detach,
            rest: serde_json::Map::new(),
        }
    }

    fn dial(&self) -> Result<Conn, Failed> {
        let Some(path) = self.address.strip_prefix("unix:") else {
            return Err(Failed(format!("{:?} is no address: write unix:PATH", self.address), code::USAGE));
        };
        Ok(Conn::unix(Path::new(path))?)
    }
}

/// Starts it and leaves it.
fn detach(args: &ConnectArgs) -> Result<Ending, Failed> {
    let size = args.window_size.or_else(terminal_size).unwrap_or(WinSize::cells(80, 24));
    let (_, opened) = FarProgram::open(args.dial()?, &args.wanted(size, true))?;
    print(format_args!("{}\n", opened["session"].as_str().unwrap_or_default()));
    Ok(Ending::Code(0))
}

/// Runs it as if it were here.
fn drive(args: &ConnectArgs) -> Ending {
    let mut launch = Launch::new(CommandSpec::new(Vec::<PathBuf>::new()));
    launch.no_pty = !args.has_terminal();
    launch.size = args.window_size;
    let finished = launch.run_on(
        &|_, outer, size, _| {
            let typed = outer.is_some_and(tapdeck_host::Outer::is_interactive);
            let opened = args.dial().and_then(|conn| Ok(FarProgram::open(conn, &args.wanted(size, typed))?));
            let place = |Failed(why, code)| LaunchError::Place { why, code };
            opened.map(|(program, _)| Box::new(program) as Box<dyn Backend>).map_err(place)
        },
        None,
        |_| (),
    );
    match finished.outcome {
        Ok(outcome) => Ending::of(&outcome),
        Err(e) => {
            say(&e);
            Ending::of_launch_error(&e)
        }
    }
}
