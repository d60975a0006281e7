//! The rows outside the viewer: in a file, in an editor, in a shell command.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use tapdeck::{OutFile, Screen};
use tapdeck_term::Term;

use super::rows::{self, Row};
use super::{App, Effect, Mood};

/// Runs what is typed with the user's shell, and waits so that its output can be read.
const SHELL: &str =
    "\"${SHELL:-sh}\" -c \"$1\"; s=$?; printf '\\n[done, exit code %s: press Enter] ' $s; read -r _; exit $s";
const PIPE: &str = "\"${SHELL:-sh}\" -c \"$1\" <\"$2\"; s=$?; printf '\\n[done, exit code %s: press Enter] ' $s; read -r _; exit $s";
const EDIT: &str = "exec ${VISUAL:-${EDITOR:-vi}} +\"$1\" \"$2\"";

fn script(script: &str, given: &[&str]) -> Effect {
    let given = given.iter().map(|part| (*part).to_owned());
    Effect::Run(["sh", "-c", script, "sh"].map(str::to_owned).into_iter().chain(given).collect())
}

/// Runs a command.
pub(super) fn shell(command: &str) -> Effect {
    script(SHELL, &[command])
}

/// Draws a screen in the format that a name ends with; `None` if that is no picture.
fn picture(path: &str, term: &Term) -> Option<io::Result<Vec<u8>>> {
    let (_, ending) = path.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        #[cfg(feature = "raster")]
        "png" => {
            let look = tapdeck::raster::Look { scale: 2.0, ..tapdeck::raster::Look::default() };
            Screen::of(term).to_image(&look).map(|image| image.to_png()).map_err(io::Error::other)
        }
        "svg" => Ok(Screen::of(term).to_svg().into_bytes()),
        "html" => Ok(Screen::of(term).to_html().into_bytes()),
        _ => return None,
    })
}

impl App {
    /// The rows in sight of the filter, as text.
    fn write_rows(&self, from: Row, to: Row, out: &mut impl Write) -> io::Result<u64> {
        let visible = self.visible();
        let (from, to) = (visible.before(from), visible.before(to.saturating_add(1)));
        // Blank rows below the last line were never written.
        let line = |n: u64| rows::line(self.term(), visible.nth(n));
        let end = (from..to).rev().find(|n| line(*n).is_some_and(|l| !l.is_blank())).map_or(from, |n| n + 1);
        for line in (from..end).filter_map(line) {
            out.write_all(line.text_ref().as_bytes())?;
            // A wrapped line is one line.
            if !line.wrapped() {
                out.write_all(b"\n")?;
            }
        }
        out.flush()?;
        Ok(end - from)
    }

    fn lend(&mut self, from: Row, to: Row) -> io::Result<String> {
        let mut file = tempfile::Builder::new().prefix("tapdeck-").suffix(".txt").tempfile()?;
        self.write_rows(from, to, &mut io::BufWriter::new(&mut file))?;
        let path = file.path().to_string_lossy().into_owned();
        self.lent = Some(file);
        Ok(path)
    }

    /// Runs a command with rows as its input.
    pub(super) fn pipe(&mut self, command: &str, from: Row, to: Row) -> Effect {
        match self.lend(from, to) {
            Ok(path) => script(PIPE, &[command, &path]),
            Err(e) => self.failed("cannot write the rows to a temporary file", &e),
        }
    }

    /// Opens everything in the user's editor, at the row on top.
    pub(super) fn edit(&mut self) -> Effect {
        let range = rows::range(self.term());
        let at = self.visible().before(self.top(self.height())) + 1;
        match self.lend(range.start, range.end) {
            Ok(path) => script(EDIT, &[&at.to_string(), &path]),
            Err(e) => self.failed("cannot write the rows to a temporary file", &e),
        }
    }

    fn failed(&mut self, what: &str, why: &io::Error) -> Effect {
        self.notify(format!("{what}: {why}"), Mood::Wrong);
        Effect::Nothing
    }

    /// Saves the screen as a picture where the name says so, and otherwise everything as text. A
    /// file that is there stays as it is.
    pub(super) fn save(&mut self, path: &str) {
        if let Some(drawn) = picture(path, self.term()) {
            let saved = drawn.and_then(|bytes| {
                let mut file = OutFile::create_shared(path.as_ref(), false)?;
                file.write_all(&bytes)?;
                file.commit()
            });
            return match saved {
                Ok(()) => self.notify(format!("the screen is in {path}"), Mood::Going),
                Err(e) => self.notify(format!("cannot save {path}: {e}"), Mood::Wrong),
            };
        }
        let range = rows::range(self.term());
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let saved = made.and_then(|file| {
            let written = self.write_rows(range.start, range.end, &mut io::BufWriter::new(&file));
            if written.is_err() {
                // A file with half of the rows would look complete.
                let _ = std::fs::remove_file(path);
            }
            written
        });
        match saved {
            Ok(rows) => {
                self.notify(format!("saved {} to {path}", crate::human::count(rows, "row")), Mood::Going)
            }
            Err(e) => self.notify(format!("cannot save {path}: {e}"), Mood::Wrong),
        }
    }

    /// Removes the file that a command has read, after its end.
    pub(super) fn take_back(&mut self) {
        self.lent = None;
    }
}
