//! A program's output on its way to standard output.

use std::io::IsTerminal;

use tapdeck_host::terminal_size;
use tapdeck_term::{FilterOptions, ReplayFilter, Settings, Size, Term};

use crate::ending::print_bytes;

/// Passes output on byte for byte, except to a terminal: there only what draws passes, and what it
/// leaves is undone at the end.
pub(crate) struct OutputStream {
    terminal: Option<(ReplayFilter, Box<Term>)>,
}

impl OutputStream {
    /// The stream to standard output.
    pub(crate) fn stdout() -> Self {
        let of_terminal = || {
            // The model knows what is left to undo.
            let size = terminal_size().map_or(Size::new(80, 24), |size| size.or_default().size());
            let term = Term::new(size, Settings::default().scrollback(0).replies(false));
            (ReplayFilter::new(FilterOptions::default()), Box::new(term))
        };
        Self { terminal: std::io::stdout().is_terminal().then(of_terminal) }
    }

    /// Passes the next bytes on. The process ends if standard output is closed.
    pub(crate) fn pass_on(&mut self, bytes: &[u8]) {
        let Some((filter, term)) = &mut self.terminal else { return print_bytes(bytes) };
        let mut passed = Vec::new();
        filter.filter(bytes, &mut passed);
        term.feed(&passed);
        print_bytes(&passed);
    }

    /// Undoes what the output left on the terminal.
    pub(crate) fn end(self) {
        let Some((mut filter, term)) = self.terminal else { return };
        let mut rest = Vec::new();
        filter.finish(&mut rest);
        rest.extend(term.undo_modes());
        print_bytes(&rest);
    }
}

/// Prints a row with its colors and links, and nothing that does not draw.
pub(crate) fn print_styled(row: &str) {
    let (mut filter, mut out) = (ReplayFilter::new(FilterOptions::default()), Vec::new());
    filter.filter(row.as_bytes(), &mut out);
    filter.finish(&mut out);
    out.push(b'\n');
    print_bytes(&out);
}
