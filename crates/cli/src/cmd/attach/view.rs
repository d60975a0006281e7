//! A session as this terminal shows it.
//!
//! Where the sizes are the same the program's bytes pass, as far as they draw and can be undone
//! ([`ReplayFilter`]), and nothing of ours may come between them: a notice is only written while
//! output rests, and is gone before the next byte passes. The title is the model's.
//!
//! All of it is on the terminal's alternate screen, so that the user's screen comes back. The
//! program's two screens are shown in the same place there: where it switches between them, the
//! screen is painted. With lines of scrollback, the main screen is used, and the lines that scroll
//! away join those of the terminal.

use std::ops::Range;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use tapdeck_core::{Exit, Time, WinSize};
use tapdeck_host::{Clock, Keyboard, Pressed, Sink, signals};
use tapdeck_proto::attach::{Asked, Opened, Said};
use tapdeck_serve::client::{Attach, Attachment, Incoming};
use tapdeck_term::{FilterOptions, ReplayFilter, Settings, Signal, Term, undo_everything};

use super::notice::{self, Notice};
use super::told::Told;
use super::{AttachEnd, ViewOptions};
use crate::ending::output_failed;
use crate::failure::{Failure, Result};
use crate::human;
use crate::screen::crop::{Crop, Overlay, Room};
use crate::screen::detach_keys::{DetachKeys, Typed};
use crate::screen::label_edit::Labelled;
use crate::screen::write_used_rows;

/// The longest title that is shown.
const TITLE: usize = 256;
/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(2);
/// How long the list of keys stays.
const HELP: Duration = Duration::from_secs(10);
/// How long a label may take.
const LABEL: Duration = Duration::from_secs(3600);
/// How long the stream must be quiet before a notice is written.
const REST: Duration = Duration::from_millis(20);
/// The least time between two paintings of a session of another size.
const PAINT: Duration = Duration::from_millis(16);

pub(super) struct View {
    /// The session's name, and that of this client in it.
    name: String,
    party: String,
    /// Whether to say at the start how to leave.
    hints: bool,
    detach_keys: Option<DetachKeys>,
    own: WinSize,
    session: WinSize,
    /// The model of the session's screen, to paint from.
    term: Term,
    attachment: Attachment,
    keyboard: Keyboard,
    terminal: Sink,
    filter: ReplayFilter,
    /// Lines of scrollback that the terminal is to have; without, all is on its alternate screen.
    scrollback: Option<usize>,
    /// What the terminal is told of beside what is drawn.
    told: Told,
    crop: Crop,
    /// The session has another size than this terminal, or modes that do not pass.
    cropping: bool,
    /// The title that this terminal shows.
    title: String,
    /// The keyboard modes of the program, while cropping, and the sequence that undoes them.
    input_modes: (Vec<u8>, Vec<u8>),
    out: Vec<u8>,
    clock: Clock,
    painted: Time,
    /// When the last output came.
    output_at: Time,
    notice: Option<Notice>,
    /// Why nothing can be typed, if so.
    read_only: Option<&'static str>,
    drives: bool,
    /// The user has typed here, or taken the stick: the session takes the size of this
    /// terminal.
    active: bool,
    holder: Option<String>,
    /// The last error of the session that is about no request.
    complaint: Option<String>,
    /// The session sends a picture to begin from, not the stream yet.
    restoring: bool,
    /// Nothing has been shown so far.
    first: bool,
}

impl View {
    /// The view of a session that has answered with `opened`.
    pub(super) fn new(
        options: ViewOptions,
        attachment: Attachment,
        keyboard: Keyboard,
        opened: &Opened,
        wish: &Attach<'_>,
        name: &str,
    ) -> Result<Self, Failure> {
        let session = size_in(opened.cols, opened.rows);
        let ViewOptions { detach_keys, scrollback, hint, share: _, pass } = options;
        Ok(Self {
            name: human::printable(name),
            party: opened.name.clone(),
            hints: hint,
            detach_keys,
            own: keyboard.screen_size().filter(|_| keyboard.is_there()).unwrap_or(session),
            term: model(session),
            session,
            attachment,
            keyboard,
            terminal: Sink::stdout().map_err(|e| Failure::io(format!("standard output: {e}")))?,
            filter: ReplayFilter::new(FilterOptions::default().keep_screen(scrollback.is_none())),
            scrollback,
            told: Told::new(pass),
            crop: Crop::default(),
            cropping: false,
            title: String::new(),
            input_modes: Default::default(),
            out: Vec::new(),
            clock: Clock::start(),
            painted: Time::ZERO,
            output_at: Time::ZERO,
            notice: None,
            read_only: match (opened.read_only, wish.read_only) {
                (false, _) => None,
                (true, true) => Some("read-only: attach without --read-only to type"),
                (true, false) => Some("read-only: you may only watch this session"),
            },
            drives: opened.you,
            active: wish.takeover,
            holder: opened.driver.clone(),
            complaint: None,
            restoring: true,
            first: true,
        })
    }

    pub(super) fn follow(&mut self) -> Result<AttachEnd, Failure> {
        self.open_curtain();
        // The screen may have come together with the answer.
        if let Some(over) = self.receive()? {
            return Ok(over);
        }
        loop {
            self.flush();
            let now = self.clock.now().mono;
            let mut deadline = self.notice_due();
            if self.cropping && self.needs_paint() {
                let at = self.painted + PAINT;
                deadline = Some(deadline.map_or(at, |d| d.min(at)));
            }
            if self.attachment.has_more() {
                deadline = Some(now);
            }
            let limit = deadline.map(|at| at.since(now));
            let pressed = {
                let (fd, writes) = self.attachment.wants();
                let flags = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
                self.keyboard.wait_beside(limit, &mut fds)?
            };
            match pressed {
                Pressed::Keys(keys) => {
                    if let Some(over) = self.typed(&keys)? {
                        return Ok(over);
                    }
                }
                Pressed::Repaint => self.resized()?,
                Pressed::Signal(signal) => return Ok(AttachEnd::Signal(signal)),
                Pressed::Suspend => self.suspend()?,
                Pressed::Nothing => {}
            }
            self.attachment.flush()?;
            if let Some(over) = self.receive()? {
                return Ok(over);
            }
            let now = self.clock.now().mono;
            if self.notice_due().is_some_and(|at| now >= at) {
                self.turn_notice(now);
            }
            if self.cropping && self.needs_paint() && now >= self.painted + PAINT {
                self.paint();
            }
        }
    }

    /// Makes room, with what is on the screen and the terminal's title kept for later.
    fn open_curtain(&mut self) {
        if self.keyboard.screen_size().is_none() {
            return;
        }
        // A panic leaves the terminal in order.
        self.keyboard.dress(b"", &undo_everything());
        // The soft reset forgets a cursor that was saved before.
        self.out.extend_from_slice(b"\x1b[22;0t\x1b[!p\x1b[m");
        if self.scrollback.is_none() {
            self.out.extend_from_slice(b"\x1b[?1049h");
        } else {
            let rows = usize::from(self.own.or_default().rows);
            self.out.extend(std::iter::repeat_n(b'\n', rows));
        }
        self.out.extend_from_slice(b"\x1b[H\x1b[2J");
    }

    /// Stops this process with the terminal given back meanwhile.
    fn suspend(&mut self) -> Result<(), Failure> {
        if !self.keyboard.is_there() {
            return Ok(());
        }
        self.leave(None);
        self.keyboard.suspend()?;
        self.own = self.keyboard.screen_size().unwrap_or(self.own);
        if self.drives && self.active {
            self.attachment.resize(self.own)?;
        }
        self.open_curtain();
        self.title.clear();
        self.cropping = false;
        if !self.restoring {
            self.show_anew(0);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<AttachEnd>, Failure> {
        for incoming in self.attachment.receive()? {
            match incoming {
                Incoming::Output(bytes) => self.output(&bytes),
                Incoming::Control(control) => {
                    if let Some(over) = self.control(control) {
                        return Ok(Some(over));
                    }
                }
                Incoming::End => return Ok(Some(AttachEnd::Lost(self.complaint.take()))),
            }
            if self.out.len() > 1 << 20 {
                self.flush();
            }
        }
        Ok(None)
    }

    fn output(&mut self, bytes: &[u8]) {
        self.uncover();
        self.output_at = self.clock.now().mono;
        let before = self.undo();
        let was_alternate = self.term.modes().alternate();
        let changes = self.term.feed(bytes);
        let switched = self.scrollback.is_none()
            && (was_alternate != self.term.modes().alternate()
                || changes.signals.iter().any(|signal| matches!(signal, Signal::Alternate(_))));
        let passes = !self.restoring && !self.cropping && !switched;
        if passes {
            self.filter.filter(bytes, &mut self.out);
        } else {
            // A picture needs a terminal that remembers both its screens, which not every one
            // does, so it is painted from the model. The filter must know where in a sequence the
            // stream goes on.
            self.filter.filter(bytes, &mut Vec::new());
        }
        if !self.restoring && self.keyboard.screen_size().is_some() {
            let undo = if passes { self.undo() } else { before };
            if self.paints() != self.cropping {
                self.choose(&undo);
                if self.cropping {
                    self.repaint();
                }
            } else if switched && !self.cropping {
                self.out.extend_from_slice(&undo);
                self.repaint();
            }
            self.told.take(changes.signals);
            if !self.filter.is_dangling() {
                self.told.write(&mut self.out);
            }
            self.show_title();
        }
    }

    /// What resets a terminal through which the program's bytes have passed.
    fn undo(&self) -> Vec<u8> {
        if self.scrollback.is_none() { self.term.undo_in_place() } else { self.term.undo_modes() }
    }

    /// Whether the screen is painted from the model instead of passed through.
    fn paints(&self) -> bool {
        self.keyboard.screen_size().is_some()
            && (self.session != self.own_cells() || !self.term.draws_by_passing())
    }

    /// Shows the program's title, when it is a new one and no character is cut by it.
    fn show_title(&mut self) {
        if self.title != self.term.title() && !self.filter.is_dangling() {
            self.title = self.term.title().to_owned();
            let shown: String = self.title.chars().take(TITLE).collect();
            self.out.extend_from_slice(format!("\x1b]2;{}\x1b\\", human::printable(&shown)).as_bytes());
        }
    }

    /// Writes a picture of the model, as far as a stream of it may pass.
    fn put_picture(&mut self, picture: &[u8]) {
        ReplayFilter::new(FilterOptions::default()).filter(picture, &mut self.out);
    }

    /// Goes over from the picture to the stream, when the model is complete.
    fn go_live(&mut self) {
        self.restoring = false;
        if self.keyboard.screen_size().is_none() {
            if std::mem::replace(&mut self.first, false) {
                self.tell_so_far();
            }
            return;
        }
        let first = std::mem::replace(&mut self.first, false);
        self.show_anew(if first { self.scrollback.unwrap_or(0) } else { 0 });
        if first && self.hints {
            let how = self.detach_keys.as_ref().map_or("no key leaves".into(), DetachKeys::hint);
            self.notify(&format!("{}: {how}", self.name));
        }
    }

    /// Shows the session on a terminal of which nothing is known but that it is cleared, with so
    /// many lines of scrollback.
    fn show_anew(&mut self, lines: usize) {
        self.choose(&[]);
        if self.cropping || lines == 0 {
            self.repaint();
        } else {
            self.put_picture(&self.term.dump_to_terminal(lines));
        }
        self.show_title();
    }

    /// What the session has shown so far, as text for an output that is no terminal. The stream
    /// follows it.
    fn tell_so_far(&mut self) {
        let cursor = self.term.cursor();
        let here = self.term.scrollback_len() + usize::from(cursor.row);
        let mut goes_on = false;
        for (n, line) in self.term.lines().enumerate().take(here + 1) {
            if n > 0 && !goes_on {
                self.out.push(b'\n');
            }
            goes_on = line.wrapped();
            self.out.extend_from_slice(line.text().as_bytes());
            // In a wrapped line, blanks at the end of a row stand between words.
            let blanks = line.written_blanks().map_or(0, |(_, n)| usize::from(n));
            self.out.extend(std::iter::repeat_n(b' ', blanks));
        }
    }

    fn control(&mut self, message: Said) -> Option<AttachEnd> {
        match message {
            Said::Live => self.go_live(),
            Said::Resize { cols, rows } => {
                self.uncover();
                let undo = self.undo();
                self.session = size_in(cols, rows);
                self.term.resize(self.session.size());
                self.choose(&undo);
            }
            Said::Gap(gap) => {
                // The screen comes anew; what is known of the old one is worth nothing.
                self.uncover();
                self.filter.finish(&mut self.out);
                if !self.cropping && self.keyboard.screen_size().is_some() {
                    self.out.extend_from_slice(&self.undo());
                }
                self.session = size_in(gap.cols, gap.rows);
                self.term = model(self.session);
                self.crop.forget();
                self.restoring = true;
            }
            Said::Driver { driver: holder, you } => {
                self.drives = you;
                let was = std::mem::replace(&mut self.holder, holder);
                if self.drives {
                    if self.active {
                        // A session that is gone says so in what comes from it.
                        let _ = self.attachment.resize(self.own);
                    }
                } else if let Some(holder) = self.holder.clone().filter(|d| was.as_ref() != Some(d)) {
                    self.notify(&format!("{} drives", human::printable(&holder)));
                }
            }
            Said::Denied { driver: holder, error } => {
                let why = match holder {
                    Some(holder) => format!("{} drives", human::printable(&holder)),
                    None if error.is_empty() => "refused".into(),
                    None => human::printable(&error),
                };
                let prefix = self.detach_keys.as_ref().and_then(DetachKeys::prefix);
                let how = prefix.map_or(String::new(), |prefix| format!(": {prefix} t takes over"));
                self.notify(&format!("{why}{how}"));
            }
            Said::Exit(exit) => {
                let signal = exit.signal.as_deref().and_then(signals::number).map(Exit::Signal);
                let ended = signal.unwrap_or(Exit::Code(exit.code));
                return Some(AttachEnd::Exited(ended, exit.recording_error));
            }
            Said::Marked => self.notify("marked"),
            Said::Paused { paused, by } => {
                let by = Some(&*by).filter(|by| *by != self.party);
                self.notify(&human::paused(paused, by));
            }
            Said::Error { about: Some(about), message } if matches!(&*about, "mark" | "pause") => {
                self.notify(&human::printable(&message));
            }
            Said::Recording { error, .. } => {
                self.notify(&format!("the recording failed: {}", human::printable(&error)));
            }
            Said::Error { about: None, message } => self.complaint = Some(human::printable(&message)),
            _ => {}
        }
        None
    }

    fn typed(&mut self, keys: &[u8]) -> Result<Option<AttachEnd>, Failure> {
        let typed = match &mut self.detach_keys {
            Some(detach) => detach.read(keys),
            None => vec![Typed::Through(keys.to_vec())],
        };
        for typed in typed {
            let helped = self.notice.as_ref().is_some_and(|notice| notice.is_help);
            // What the user has seen goes with the next key; other notices are still to come.
            if helped || self.notice.as_ref().is_some_and(|notice| notice.until.is_some()) {
                self.dismiss_notice();
            }
            match typed {
                Typed::Through(_) | Typed::Take | Typed::Release | Typed::Label(_) | Typed::Pause
                    if self.read_only.is_some() =>
                {
                    self.detach_keys.as_mut().into_iter().for_each(DetachKeys::drop_label);
                    self.notify(self.read_only.unwrap_or_default());
                }
                Typed::Through(bytes) => {
                    self.active = true;
                    if self.drives && self.session != self.own_cells() {
                        // The session takes the size of the client that types.
                        self.attachment.resize(self.own)?;
                    }
                    self.attachment.type_bytes(&bytes)?;
                }
                Typed::Detach => return Ok(Some(AttachEnd::Detached)),
                Typed::Suspend => self.suspend()?,
                Typed::Take => {
                    self.active = true;
                    self.attachment.control(&Asked::Take)?;
                }
                Typed::Release => self.attachment.control(&Asked::Release)?,
                Typed::Label(Labelled::Typing(shown)) => self.put_notice(shown, LABEL, false),
                Typed::Label(Labelled::GivenUp) => self.dismiss_notice(),
                Typed::Label(Labelled::Done(label)) => {
                    self.dismiss_notice();
                    self.attachment.control(&Asked::Mark { label })?;
                }
                Typed::Pause => self.attachment.control(&Asked::Pause { pause: None })?,
                Typed::Help if helped => {}
                Typed::Help => self.show_help(),
            }
        }
        Ok(None)
    }

    fn resized(&mut self) -> Result<(), Failure> {
        self.uncover();
        if let Some(size) = self.keyboard.screen_size() {
            let followed = self.active || self.session == self.own_cells();
            self.own = size;
            if self.drives && followed {
                self.attachment.resize(size)?;
            }
        }
        if !self.restoring {
            let undo = self.undo();
            let passed = !self.cropping;
            self.choose(&undo);
            if passed && !self.cropping {
                self.out.extend_from_slice(&undo);
            }
            if passed || self.cropping {
                self.repaint();
            }
        }
        Ok(())
    }

    fn own_cells(&self) -> WinSize {
        let own = self.own.or_default();
        WinSize::cells(own.cols, own.rows)
    }

    /// Passes bytes through, or paints if the sizes differ. `undo` resets a terminal
    /// through which bytes passed.
    fn choose(&mut self, undo: &[u8]) {
        self.crop.forget();
        let cropping = self.paints();
        if std::mem::replace(&mut self.cropping, cropping) == cropping {
            return;
        }
        if cropping {
            self.filter.interrupt(&mut self.out);
            self.out.extend_from_slice(undo);
            self.out.extend_from_slice(if self.scrollback.is_none() { b"" } else { b"\x1b[?1049h" });
        } else {
            self.stop_painting();
            if !self.restoring {
                self.repaint();
            }
        }
    }

    fn stop_painting(&mut self) {
        self.out.extend_from_slice(&std::mem::take(&mut self.input_modes).1);
        self.crop.leave(&mut self.out);
        self.out.extend_from_slice(if self.scrollback.is_none() { b"" } else { b"\x1b[?1049l" });
        self.out.extend_from_slice(b"\x1b[?25h");
        if let Some(notice) = &mut self.notice {
            notice.covers = None;
        }
    }

    fn needs_paint(&self) -> bool {
        !self.restoring && self.crop_is_stale() && !self.term.modes().synchronised()
    }

    fn crop_is_stale(&self) -> bool {
        self.crop.seen() != Some(self.term.generation())
    }

    fn paint(&mut self) {
        self.painted = self.clock.now().mono;
        let mut over = Overlay::default();
        if self.notice.as_ref().is_some_and(|notice| notice.covers.is_some()) {
            let (rows, lines) = self.place_notice();
            let at = rows.clone().zip(lines).map(|(row, line)| format!("\x1b[{};1H{line}", row + 1));
            over = Overlay { bytes: at.collect::<String>().into_bytes(), rows };
        }
        self.crop.paint(&self.term, self.room(), &over, &mut self.out);
        // The terminal encodes keys as the program wants them.
        let modes = self.term.input_modes();
        if modes != self.input_modes {
            let was = std::mem::replace(&mut self.input_modes, modes);
            self.out.extend_from_slice(&was.1);
            self.out.extend_from_slice(&self.input_modes.0);
        }
    }

    fn room(&self) -> Room {
        let own = self.own.or_default();
        Room { cols: own.cols, rows: own.rows, free: own.rows, pan: None }
    }

    /// Draws everything anew.
    fn repaint(&mut self) {
        if self.cropping {
            self.crop.forget();
            self.paint();
        } else {
            let in_place = self.scrollback.is_none();
            self.put_picture(&if in_place { self.term.dump_in_place() } else { self.term.dump_screen() });
        }
    }

    /// Shows a notice as soon as that disturbs no output.
    fn notify(&mut self, text: &str) {
        self.put_notice(text.to_owned(), NOTICE, false);
    }

    fn show_help(&mut self) {
        let help = self.detach_keys.as_ref().map(|keys| keys.help(self.read_only.is_some()));
        self.put_notice(help.unwrap_or_default(), HELP, true);
    }

    fn put_notice(&mut self, text: String, stays: Duration, is_help: bool) {
        if self.keyboard.is_there() && self.keyboard.screen_size().is_some() {
            self.uncover();
            self.notice = Some(Notice { text, is_help, stays, until: None, covers: None });
        }
    }

    /// When the notice comes or goes; never within a sequence, which goes on by
    /// itself.
    fn notice_due(&self) -> Option<Time> {
        let notice = self.notice.as_ref()?;
        match notice.until {
            Some(until) if notice.covers.is_some() => Some(until),
            _ if self.cropping => Some(Time::ZERO),
            _ if self.restoring || self.filter.is_dangling() || self.term.modes().synchronised() => None,
            _ => Some(self.output_at + REST),
        }
    }

    /// Shows the notice, or removes it.
    fn turn_notice(&mut self, now: Time) {
        let Some(notice) = &mut self.notice else { return };
        let until = *notice.until.get_or_insert(now + notice.stays);
        if now >= until {
            return self.dismiss_notice();
        }
        let (rows, lines) = self.place_notice();
        if self.cropping {
            if !self.restoring {
                self.repaint();
            }
            return;
        }
        for (row, line) in rows.zip(lines) {
            self.out.extend_from_slice(&self.term.over_row(row, &line));
        }
    }

    /// Puts the notice on the screen, away from the cursor. Returns its rows and their text.
    fn place_notice(&mut self) -> (Range<u16>, Vec<String>) {
        let (own, room, cursor) = (self.own.or_default(), self.room(), self.term.cursor().row);
        let row = match self.cropping {
            true => {
                let layout = self.crop.layout_of(&self.term, room);
                cursor.checked_sub(layout.corner.0).map(|row| row + layout.at.0)
            }
            false => Some(cursor),
        };
        let Some(notice) = &mut self.notice else { return (0..0, Vec::new()) };
        let lines = notice::lines_of(&notice.text, own.cols);
        let rows = notice::place(lines.len(), own.rows, row);
        notice.covers = Some(rows.clone());
        (rows, lines)
    }

    /// Removes the notice before the program's bytes go on. It comes back when
    /// they rest.
    fn uncover(&mut self) {
        if !self.cropping
            && let Some(rows) = self.notice.as_mut().and_then(|notice| notice.covers.take())
        {
            rows.for_each(|row| self.out.extend_from_slice(&self.term.repaint_row(row)));
        }
    }

    /// Removes the notice for good.
    fn dismiss_notice(&mut self) {
        self.uncover();
        let covered = self.notice.take().is_some_and(|notice| notice.covers.is_some());
        if covered && self.cropping && !self.restoring {
            self.repaint();
        }
    }

    /// Gives the terminal back in order, with the user's screen. The last screen of a session that
    /// is over stays on it, because no client can look at it again.
    pub(super) fn leave(&mut self, over: Option<&AttachEnd>) {
        if self.keyboard.screen_size().is_some() {
            self.uncover();
            let mut rows = Vec::new();
            let (alternate, in_place) = (self.term.modes().alternate(), self.scrollback.is_none());
            if matches!(over, Some(AttachEnd::Exited(..))) && (self.cropping || alternate || in_place) {
                let above = if alternate { 0 } else { usize::MAX };
                let lines = self.term.lines().skip(self.term.scrollback_len().saturating_sub(above));
                // A write to memory cannot fail.
                let _ = write_used_rows(lines, true, "\r\n", &mut rows);
            }
            let cropping = std::mem::take(&mut self.cropping);
            if cropping {
                self.stop_painting();
            } else {
                self.filter.interrupt(&mut self.out);
                self.out.extend_from_slice(&self.undo());
            }
            if in_place {
                self.out.extend_from_slice(b"\x1b[m\x1b[?1049l");
            } else if cropping {
                self.out.extend_from_slice(b"\x1b[m\x1b[H\x1b[2J");
            } else {
                // Below the last used row: the empty part of the screen would push the rows away.
                let mut main = self.term.clone();
                main.feed(&main.undo_modes());
                let used = main.screen().rposition(|line| !line.is_blank()).map_or(0, |row| row + 1);
                let end = if used == 0 { "" } else { "\r\n" };
                self.out.extend_from_slice(format!("\x1b[m\x1b[{};1H{end}", used.max(1)).as_bytes());
            }
            self.out.extend_from_slice(&rows);
            self.told.end(&mut self.out);
            self.out.extend_from_slice(b"\x1b[23;0t");
        }
        self.flush();
        self.keyboard.dress(b"", b"");
    }

    fn flush(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.out).into();
        if let Err(e) = self.terminal.write(&bytes).and_then(|()| self.drain()) {
            output_failed(&e);
        }
    }

    /// Waits until the terminal has taken everything. A connection that is kept up from here must
    /// not wait with us.
    fn drain(&mut self) -> std::io::Result<()> {
        let mut lives = true;
        while self.terminal.is_blocked() {
            let mut fds = vec![PollFd::from_borrowed_fd(self.terminal.fd(), PollFlags::OUT)];
            let upkeep = self.attachment.upkeep().filter(|_| lives);
            fds.extend(upkeep.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                // The next read reports a failure.
                lives = self.attachment.tend().is_ok();
            }
            self.terminal.flush()?;
        }
        Ok(())
    }
}

fn size_in(cols: u16, rows: u16) -> WinSize {
    WinSize::cells(cols.max(1), rows.max(1))
}

fn model(size: WinSize) -> Term {
    Term::new(size.size(), Settings::default().replies(false))
}
