//! `tapdeck peek`: what is on a session's screen, without attaching.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tapdeck::{OutFile, Screen as Picture};
use tapdeck_cli::color::Color;
use tapdeck_proto::bus::{InfoWanted, Role, Screen, Snap};
use tapdeck_serve::client::{ANSWER, Bus};

use crate::config::Config;
use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::screen::print_styled;
use crate::sessions::{Which, ask, connect, find};

/// How long to wait for a frame full of rows that scrolled away, on a slow machine under load.
const SCROLLBACK: Duration = Duration::from_secs(60);

/// Print a session's screen, or write it as a picture.
#[derive(Args)]
#[command(after_help = "\
--since takes the output offset that --json prints as \"seq\". It prints the rows written since then,
including those that have scrolled off.

--output writes the screen as .png, .svg or .html.

Examples:
  tapdeck peek build
  tapdeck peek build --scrollback | less
  tapdeck peek build --json | jq .seq
  tapdeck peek build --since 4096
  tapdeck peek build -o build.png --window")]
pub(crate) struct PeekArgs {
    #[command(flatten)]
    which: Which,
    /// When to use colors
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, conflicts_with_all = ["json", "since"])]
    color: Color,
    /// The old name of `--color always`
    #[arg(long, hide = true, conflicts_with_all = ["json", "since", "color"])]
    ansi: bool,
    /// Print JSON: rows, styles, cursor, modes, title and output offset
    #[arg(long)]
    pub(super) json: bool,
    /// Include the scrollback
    #[arg(long)]
    scrollback: bool,
    /// Print only rows written since this output offset
    #[arg(long, value_name = "SEQ", conflicts_with = "scrollback")]
    since: Option<u64>,
    /// Write the screen as a picture: .png, .svg or .html
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "scrollback", "since", "color", "ansi"])]
    output: Option<PathBuf>,
    /// Replace an existing picture
    #[arg(long, requires = "output")]
    overwrite: bool,
    /// Color theme of the picture: dark, light, high-contrast, sepia, dracula or one of your own
    #[arg(long, value_name = "THEME", requires = "output")]
    theme: Option<String>,
    #[cfg(feature = "raster")]
    #[command(flatten)]
    look: crate::look_args::LookArgs,
}

pub(crate) fn run(args: &PeekArgs) -> Result {
    let listing = find(args.which.session.as_deref())?;
    let mut bus = connect(&listing, "peek", Role::Observer)?;
    // The last look at an ended session ends it, so a failed recording is told now or never.
    let failed = ask(&mut bus, &InfoWanted::Brief)?.status.recording_error;
    if let Some(why) = failed {
        say(format_args!("the recording of {} failed: {why}", listing.shown()));
    }
    if let Some(path) = &args.output {
        return args.write_picture(&mut bus, path);
    }
    let ansi = args.ansi || (args.color.is_on() && !args.json && args.since.is_none());
    let asked = Snap { ansi, scrollback: args.scrollback, since: args.since, before: None };
    let screen = whole(&mut bus, asked)?;
    if args.json {
        print_json(&screen);
        return Ok(Ending::Done);
    }
    let rows = if ansi {
        screen.ansi
    } else if args.since.is_some() || args.scrollback {
        screen.lines
    } else {
        Some(screen.contents.rows)
    };
    // Sessions of older versions leave out what does not fit in a frame, and do not say so.
    let rows =
        rows.ok_or_else(|| Failure::io("the session left the rows out: they do not fit in a frame"))?;
    // Leaves out the empty rows below the last used one.
    let used = rows.iter().rposition(|r| !r.is_empty()).map_or(0, |i| i + 1);
    for row in &rows[..used] {
        match ansi {
            true => print_styled(row),
            false => print(format_args!("{row}\n")),
        }
    }
    Ok(Ending::Done)
}

impl PeekArgs {
    /// Writes the screen in the format that the file's name ends with.
    fn write_picture(&self, bus: &mut Bus, path: &Path) -> Result {
        let ending = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
        let theme = Config::load()?.choose_theme(self.theme.as_deref(), "").map_err(Failure::usage)?;
        let theme = theme.unwrap_or_default();
        let mut screen = || -> Result<Picture> {
            Ok(Picture::of_frame(&whole(bus, Snap { ansi: true, ..Snap::default() })?))
        };
        let bytes = match &*ending {
            #[cfg(feature = "raster")]
            "png" => {
                let look = self.look.look(2.0).map_err(Failure::usage)?;
                let look = tapdeck::raster::Look { theme, ..look };
                screen()?.to_image(&look).map_err(|e| Failure::usage(e.to_string()))?.to_png()
            }
            "svg" => screen()?.to_svg_in(theme).into_bytes(),
            "html" | "htm" => screen()?.to_html_in(theme).into_bytes(),
            _ => {
                let why = format!("unsupported picture format \".{ending}\"; supported: .png, .svg, .html");
                return Err(Failure::usage(why));
            }
        };
        let written = OutFile::create_shared(path, self.overwrite).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.commit()
        });
        written.map_err(|e| Failure::write(path, &e))?;
        Ok(Ending::Done)
    }
}

/// Takes a snapshot with all rows. A session sends the newest rows that fit in a frame, so older
/// rows take further requests.
fn whole(bus: &mut Bus, asked: Snap) -> Result<Screen> {
    let patience = if asked.scrollback { SCROLLBACK } else { ANSWER };
    let mut screen = bus.request(&asked, patience)?;
    while screen.omitted > 0 {
        let Some(before) = screen.from else { break };
        let older = bus.request(&Snap { before: Some(before), ..asked }, patience)?;
        // Rows that have been dropped in between are gone.
        (screen.omitted, screen.from) = (older.omitted, older.from.filter(|from| *from < before));
        for (rows, older) in [(&mut screen.lines, older.lines), (&mut screen.ansi, older.ansi)] {
            if let (Some(rows), Some(older)) = (rows, older) {
                rows.splice(..0, older);
            }
        }
    }
    if screen.omitted > 0 {
        return Err(Failure::io("the session's rows do not fit in a frame"));
    }
    screen.from = None;
    Ok(screen)
}
