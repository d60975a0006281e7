//! `tapdeck cassette frames`: the frames as the bytes give them, against those that are kept.

use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use serde_json::json;
use tapdeck_host::cassette::{CassetteFolder, CommitError};
use tapdeck_tape::cassette::{Files, Frame, derive_frames, is_traces, open_for_viewing, reframed};

use crate::ending::{Ending, print, print_json, say};
use crate::failure::{Failure, Result};
use crate::human;

/// Derive a cassette's frames from its bytes again and show the differences.
#[derive(Args)]
#[command(after_help = "\
Frames are derived from output.raw, output.jsonl and the resizes. The exit code is 1 if the stored
frames differ from the derived ones. After an update of the terminal model, look at the differences
and replace the frames with --write. It refuses a cassette whose other files were changed.

Examples:
  tapdeck cassette frames cassettes/top
  tapdeck cassette frames --show cassettes/top | less
  tapdeck cassette frames --write cassettes/top")]
pub(crate) struct FramesArgs {
    /// The cassette
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Print the derived frames as text
    #[arg(long, conflicts_with = "write")]
    show: bool,
    /// Replace the stored frames
    #[arg(long)]
    write: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &FramesArgs) -> Result {
    let refused = |e| Failure::cassette(&args.path, e);
    if is_traces(&args.path) && args.write {
        let message =
            format!("{} holds the traces of a failed run: nothing is written there", args.path.display());
        return Err(Failure::usage(message));
    }
    let cassette = open_for_viewing(&args.path).map_err(refused)?;
    let (derived, _) = derive_frames(&cassette);
    if args.show {
        derived.iter().for_each(|frame| print(format_args!("{}", picture(frame))));
        return Ok(Ending::Done);
    }
    let emulator = cassette.manifest.terminal.emulator.check().err();
    let differing: Vec<(&Frame, Vec<String>)> = cassette
        .frames
        .iter()
        .zip(&derived)
        .filter(|(kept, derived)| kept != derived)
        .map(|(kept, derived)| (kept, kept.differences(derived)))
        .collect();
    let written = args.write && (!differing.is_empty() || emulator.is_some());
    let new = match written {
        true => {
            let files = Files::read(&args.path).map_err(refused)?;
            let new = reframed(&cassette, &files);
            Some(new.map_err(|why| Failure::check(format!("{}: {why}", args.path.display())))?)
        }
        false => None,
    };
    if args.json {
        let list: Vec<_> =
            differing.iter().map(|(f, d)| json!({"seq": f.seq, "t_ms": f.t_ms, "differences": d})).collect();
        let value = json!({
            "cassette": args.path.to_string_lossy(), "frames": derived.len(), "differing": list,
            "emulator": emulator.as_ref().map(ToString::to_string), "written": written,
        });
        print_json(&value);
    } else {
        if let Some(refusal) = &emulator {
            say(refusal);
        }
        for (frame, differences) in &differing {
            print(format_args!("frame seq {} at {} ms\n", frame.seq, frame.t_ms));
            for line in differences {
                print(format_args!("  {}\n", human::printable(line)));
            }
        }
        let count = derived.len();
        match differing.len() {
            0 => print(format_args!("{count} frames are what the bytes show\n")),
            n => print(format_args!("{n} of {count} frames differ from what the bytes show\n")),
        }
    }
    if let Some(new) = new {
        write(args, &new)?;
        return Ok(Ending::Done);
    }
    Ok(Ending::of_check(differing.is_empty() && emulator.is_none()))
}

/// Writes the whole cassette anew and exchanges it with the old one, so that it is never half of
/// each.
fn write(args: &FramesArgs, files: &[(&'static str, Bytes)]) -> Result<()> {
    let fail = |e: CommitError| Failure::io(e.to_string());
    let mut folder = CassetteFolder::create(&args.path, true).map_err(fail)?;
    for (name, bytes) in files {
        folder.append(name, bytes).map_err(fail)?;
    }
    folder.commit().map_err(fail)
}

/// Draws a frame as text.
fn picture(frame: &Frame) -> String {
    let cols = usize::from(frame.size.cols);
    let mut text = format!(
        "seq {} at {} ms, {}x{}, bytes {}..{}, cursor {}:{}{}{}\n",
        frame.seq,
        frame.t_ms,
        frame.size.cols,
        frame.size.rows,
        frame.raw_start,
        frame.raw_end,
        frame.cursor.row,
        frame.cursor.col,
        if frame.cursor.visible { "" } else { " hidden" },
        if frame.modes.alternate_screen { ", alternate screen" } else { "" },
    );
    let line = "─".repeat(cols);
    text.push_str(&format!("┌{line}┐\n"));
    for row in &frame.text {
        let row = human::printable(row);
        let blank = cols.saturating_sub(tapdeck_term::text_width(&row));
        text.push_str(&format!("│{row}{}│\n", " ".repeat(blank)));
    }
    text.push_str(&format!("└{line}┘\n"));
    text
}
