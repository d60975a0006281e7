//! `tapdeck reset`: puts a terminal in order after a client that could not do it itself.

use clap::Args;
use tapdeck_host::restore_sane_settings;
use tapdeck_term::undo_everything;

use crate::ending::{Ending, print_bytes};
use crate::failure::{Failure, Result};

/// Put the terminal in order after a crash or kill -9.
#[derive(Args)]
#[command(after_help = "\
Turns echo and line editing on, leaves the alternate screen, shows the cursor, and undoes the modes of
the keyboard, the mouse and the paste, and changes of colors. It does not clear the screen or the
scrollback. If you cannot see what you type, press Ctrl-J, type tapdeck reset, and press Ctrl-J.

Examples:
  tapdeck reset")]
pub(crate) struct ResetArgs {}

pub(crate) fn run(_: &ResetArgs) -> Result {
    if !restore_sane_settings().map_err(|e| Failure::io(format!("cannot set up the terminal: {e}")))? {
        return Err(Failure::usage("standard output is no terminal: run this in the terminal to reset"));
    }
    let mut bytes = undo_everything();
    bytes.extend_from_slice(b"\r\x1b[J");
    print_bytes(&bytes);
    Ok(Ending::Done)
}
