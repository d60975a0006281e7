//! `tapdeck tour`: a recording that shows the main commands.

use std::io::{IsTerminal, Write};
use std::path::Path;

use clap::Args;
use tapdeck_host::{Goal, Player};
use tapdeck_term::Settings;

use super::play::{self, PlayArgs};
use crate::ending::{Ending, print, print_bytes};
use crate::failure::{Failure, Result};
use crate::screen::top_row;

/// Made by `make.sh` beside it.
const RECORDING: &[u8] = include_bytes!("../tour/tour.cast");

/// More rows than a chapter has.
const ROWS: usize = 1_000;

/// Learn the main commands in two minutes.
#[derive(Args)]
#[command(after_help = "\
The tour is a recording, with the keys of play: space pauses, ] and [ go to the next and the previous
chapter, q quits. If standard output is not a terminal, the tour is printed as text.

Examples:
  tapdeck tour
  tapdeck tour | less   read it as text")]
pub(crate) struct TourArgs {}

pub(crate) fn run(_: &TourArgs) -> Result {
    let written = tempfile::Builder::new().prefix("tapdeck-tour-").suffix(".cast").tempfile();
    let written = written.and_then(|mut file| file.write_all(RECORDING).map(|()| file));
    let file = written.map_err(|e| {
        let folder = std::env::temp_dir();
        Failure::io(format!(
            "cannot write the tour to {}: {e}; set TMPDIR to another folder",
            folder.display()
        ))
    })?;
    if !std::io::stdout().is_terminal() {
        return print_chapters(file.path());
    }
    let ending = play::run(&PlayArgs::of(file.path()))?;
    if ending == Ending::Done {
        print(format_args!("\nNext: tapdeck rec demo.ahr, then tapdeck play demo.ahr\n"));
    }
    Ok(ending)
}

/// Prints what each chapter shows, without the empty rows of its screens.
fn print_chapters(path: &Path) -> Result {
    let mut player = Player::open(path, Settings::default().scrollback(ROWS))?;
    let begins: Vec<Goal> = player.moments(None).unwrap_or_default().iter().map(Goal::from).collect();
    let next = player.moments(None).unwrap_or_default().iter().skip(1);
    let mut ends: Vec<_> = next.map(|chapter| chapter.time.shifted(-1)).collect();
    ends.push(player.known_end());
    let mut text = String::new();
    for (begin, end) in begins.into_iter().zip(ends) {
        player.seek(begin)?;
        let top = top_row(player.term());
        player.seek(Goal::Time(end))?;
        let term = player.term();
        let skip = usize::try_from(top.saturating_sub(term.evicted())).unwrap_or(usize::MAX);
        for row in term.lines().skip(skip) {
            if !row.is_blank() || !text.ends_with("\n\n") {
                text.push_str(row.text().trim_end());
                text.push('\n');
            }
        }
    }
    print_bytes(format!("{}\n", text.trim_end()).as_bytes());
    Ok(Ending::Done)
}
