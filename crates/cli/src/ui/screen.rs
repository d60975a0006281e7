//! The real terminal behind a view: taken with its keyboard, given back on every way out, painted
//! in one write a frame.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crossterm::event::Event;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use tapdeck_core::base64;
use tapdeck_host::{Keyboard, Pressed};
use tapdeck_term::{MAX_SIDE, Rgb};

use super::keys::Decoder;

/// After so long without more, a lone Escape is the key.
const ESCAPE_WAIT: Duration = Duration::from_millis(30);

/// Alternate screen, no cursor, bracketed paste; the mouse separately.
const ON: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[2J";
const ON_MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const OFF: &[u8] = b"\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?2004l\x1b[m\x1b[?25h\x1b[?1049l";

/// What a wait for the terminal returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenEvent {
    /// Keys, mouse events and pastes; none when the wait ended for another reason.
    Input(Vec<Event>),
    /// A signal asks this process to end.
    Signal(i32),
    /// The terminal must be painted anew. Its size may have changed.
    Repaint,
}

/// The terminal.
pub struct Screen {
    // Before the keyboard, whose drop gives the terminal back.
    terminal: Terminal<CrosstermBackend<Out>>,
    keyboard: Keyboard,
    decoder: Decoder,
}

impl Screen {
    /// Takes the terminal, with a cursor of this colour. Returns `None` if there is none.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn take(mouse: bool, cursor: Option<Rgb>) -> io::Result<Option<Self>> {
        let mut on = if mouse { [ON, ON_MOUSE].concat() } else { ON.to_owned() };
        let mut off = OFF.to_owned();
        if let Some(colour) = cursor {
            on.extend_from_slice(format!("\x1b]12;{colour}\x1b\\").as_bytes());
            off.extend_from_slice(b"\x1b]112\x1b\\");
        }
        let keyboard = Keyboard::take_dressed(&on, &off)?;
        if !keyboard.is_there() {
            return Ok(None);
        }
        let terminal = fresh(&keyboard)?;
        Ok(Some(Self { terminal, keyboard, decoder: Decoder::default() }))
    }

    /// Waits for input, at most `at_most`. Data on another descriptor ends the wait, too.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn wait(&mut self, at_most: Option<Duration>, others: &[BorrowedFd<'_>]) -> io::Result<ScreenEvent> {
        let waiting = self.decoder.is_waiting();
        let limit = match (waiting, at_most) {
            (true, limit) => Some(limit.map_or(ESCAPE_WAIT, |l| l.min(ESCAPE_WAIT))),
            (false, limit) => limit,
        };
        // Other descriptors must not cut the wait for the end of a sequence short.
        let others = if waiting { &[] } else { others };
        Ok(match self.keyboard.wait_with(limit, others)? {
            Pressed::Keys(bytes) => ScreenEvent::Input(self.decoder.push(&bytes)),
            Pressed::Signal(signal) => ScreenEvent::Signal(signal),
            Pressed::Repaint => {
                self.repaint()?;
                ScreenEvent::Repaint
            }
            Pressed::Suspend => {
                self.suspend()?;
                ScreenEvent::Repaint
            }
            Pressed::Nothing if waiting => ScreenEvent::Input(self.decoder.flush()),
            Pressed::Nothing => ScreenEvent::Input(Vec::new()),
        })
    }

    /// Stops this process, as the user asked with a key.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.keyboard.suspend()?;
        self.repaint()
    }

    /// Forgets the picture, so that the next frame is painted whole.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        self.repaint()
    }

    /// Puts text on the clipboard of the terminal, if it allows that (OSC 52).
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        self.tell(format!("\x1b]52;c;{}\x07", base64::encode(text.as_bytes())).as_bytes())
    }

    /// Tells the terminal something that is no part of the picture.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn tell(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    fn repaint(&mut self) -> io::Result<()> {
        self.terminal = fresh(&self.keyboard)?;
        Ok(())
    }

    /// Paints a frame; only what changed is sent.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(paint)?;
        Ok(())
    }
}

/// An empty picture of the terminal's size. The size comes from `host`, which does not guess.
fn fresh(keyboard: &Keyboard) -> io::Result<Terminal<CrosstermBackend<Out>>> {
    let size = keyboard.screen_size().unwrap_or_default();
    let area = Rect::new(0, 0, size.cols.min(MAX_SIDE), size.rows.min(MAX_SIDE));
    let backend = CrosstermBackend::new(Out::new(io::stdout(), b"\x1b[m\x1b[2J"));
    Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(area) })
}

/// Standard output, by frames. Each frame is one write, marked as one synchronised update.
///
/// A frame with the bytes of the one before changes nothing and is not written. Otherwise a view
/// that shows its own session would see its own writing as news, and paint forever.
struct Out<W = io::Stdout> {
    to: W,
    frame: Vec<u8>,
    last: Vec<u8>,
}

impl<W: Write> Out<W> {
    fn new(to: W, begin: &[u8]) -> Self {
        Self { to, frame: begin.to_vec(), last: Vec::new() }
    }
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let same = self.frame.is_empty() || self.frame == self.last;
        std::mem::swap(&mut self.last, &mut self.frame);
        self.frame.clear();
        if same {
            return Ok(());
        }
        self.to.write_all(&[b"\x1b[?2026h", &self.last[..], b"\x1b[?2026l"].concat())?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_changes_nothing_is_not_written() {
        let mut out = Out::new(Vec::new(), b"");
        for frame in ["a", "b", "b", "b", "a"] {
            out.write_all(frame.as_bytes()).expect("taken");
            out.flush().expect("written");
        }
        let written = String::from_utf8(out.to).expect("text");
        assert_eq!(written.replace("\x1b[?2026h", "<").replace("\x1b[?2026l", ">"), "<a><b><a>");
    }
}
