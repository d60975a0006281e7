//! `tapdeck attach`: a live session in this terminal.
//!
//! While the session has this terminal's size its bytes pass through as they are; otherwise a model of our own is kept,
//! and the part around its cursor painted. Questions of the program to its terminal are taken out: the session's own
//! model answers them.

use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use tapdeck_core::{Exit, WinSize};
use tapdeck_host::{Clock, Keyboard, Pressed, Sink, signals};
use tapdeck_serve::client::{Attach, Attachment, Incoming};
use tapdeck_serve::door::Address;
use tapdeck_term::{FilterOptions, ModeWatch, ReplayFilter, Settings, Size, Term};

use super::sessions::{Failed, Which, find};
use crate::config::Config;
use crate::ending::{Ending, code, output_failed, say};
use crate::human;
use crate::screen::crop::Crop;
use crate::screen::detach_keys::{DetachKeys, Typed};

/// Bring a live session to this terminal.
#[derive(Args)]
#[command(after_help = "\
Leave with C-\\ d (Ctrl-backslash, then d). C-\\ t takes the stick from whoever drives, C-\\ r
gives it up, C-\\ typed twice sends it. Ends with 0 when you leave and when the program ends. The
session has the size of the terminal of whoever drives; all others see as much of it as fits.

Examples:
  tapdeck attach build
  tapdeck attach build --read-only
  tapdeck attach build --takeover
  tapdeck attach build --detach-keys 'C-p C-q'")]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    which: Which,
    /// Only watch
    #[arg(short, long, conflicts_with = "takeover")]
    read_only: bool,
    /// Take the stick, whoever drives
    #[arg(long)]
    takeover: bool,
    /// The keys to leave with, one or two, or `none`; C-\ d unless the configuration says otherwise
    #[arg(long, value_name = "KEYS")]
    detach_keys: Option<String>,
}

/// The keys to leave with, if there are any.
pub(crate) type Keys = Option<DetachKeys>;

/// Those that were asked for, or those of the configuration.
pub(crate) fn keys_to_leave_with(asked: Option<&str>) -> Result<Keys, Failed> {
    let keys = match asked {
        Some(keys) => keys.to_owned(),
        None => Config::load().map_err(|e| Failed(e, code::USAGE))?.attach.detach_keys,
    };
    detach_keys(&keys).map_err(|e| Failed(e, code::USAGE))
}

fn detach_keys(text: &str) -> Result<Keys, String> {
    if text == "none" { Ok(None) } else { text.parse().map(Some) }
}

/// How long a message stays.
const MESSAGE_NS: u64 = 2_000_000_000;
/// The least time between two paintings of a session of another size.
const PAINT_NS: u64 = 16_000_000;

pub(crate) fn run(args: &AttachArgs) -> Ending {
    attach(args).unwrap_or_else(Failed::end)
}

fn attach(args: &AttachArgs) -> Result<Ending, Failed> {
    let keys = keys_to_leave_with(args.detach_keys.as_deref())?;
    let listing = find(args.which.session.as_deref())?;
    if std::env::var_os(super::ipc::SESSION_VAR).is_some_and(|own| *own == *listing.id) {
        return Err(Failed(
            "this is that session: attaching it to itself would never end".into(),
            code::USAGE,
        ));
    }
    let wish = Attach {
        name: "attach",
        token: Some(&listing.human_token),
        read_only: args.read_only,
        takeover: args.takeover,
        ..Attach::default()
    };
    let again = format!("tapdeck attach {}", listing.id);
    let from = Origin { id: &listing.id, again: &again, far: false };
    bring(keys, &from, &wish, |wish| Ok(Attachment::open(&Address::Unix(listing.socket.clone()), wish)?))
}

/// Where a session is brought from.
pub(crate) struct Origin<'a> {
    /// What it is called.
    pub(crate) id: &'a str,
    /// The command that comes back.
    pub(crate) again: &'a str,
    /// It is a server's: commands for sessions here do not reach it, and this one ends as its program ended.
    pub(crate) far: bool,
}

/// Brings a session to this terminal, wherever it is: `open` reaches it.
pub(crate) fn bring(
    keys: Keys,
    from: &Origin<'_>,
    wish: &Attach<'_>,
    open: impl FnOnce(&Attach<'_>) -> Result<(Attachment, Value), Failed>,
) -> Result<Ending, Failed> {
    let io = |e: std::io::Error| Failed(e.to_string(), code::IO);
    let keyboard = Keyboard::take().map_err(io)?;
    let size = keyboard.screen_size().filter(|_| keyboard.is_there());
    let Origin { id, again, far } = *from;
    let request = Attach { read_only: wish.read_only || !keyboard.is_there(), size, ..wish.clone() };
    let (attachment, opened) = open(&request)?;
    if !keyboard.is_there() && !wish.read_only {
        let reach = if far { String::new() } else { format!("; tapdeck type and send reach {id}") };
        say(format_args!("standard input is no terminal, so this only watches{reach}"));
    }
    let session = WinSize::cells(side(&opened, "cols"), side(&opened, "rows"));
    let mut view = View {
        detach_keys: keys,
        own: size.unwrap_or(session),
        term: Term::new(model_size(session), Settings { replies: false, ..Settings::default() }),
        session,
        attachment,
        keyboard,
        terminal: Sink::stdout().map_err(|e| Failed(format!("standard output: {e}"), code::IO))?,
        filter: ReplayFilter::new(FilterOptions::default()),
        watch: ModeWatch::new(),
        crop: Crop::default(),
        cropping: false,
        set_modes: Vec::new(),
        out: Vec::new(),
        clock: Clock::start(),
        painted_ns: 0,
        message_until: None,
        drives: opened["you"].as_bool().unwrap_or(false),
        driver: opened["driver"].as_str().map(str::to_owned),
        complaint: None,
        offset: 0,
        restoring: true,
        first: true,
    };
    let result = view.follow();
    let left = view.leave();
    let how = result?;
    left?;
    drop(view);
    match how {
        Over::Detached => {
            say(format_args!("detached from {id}: {again} comes back"));
        }
        Over::Exited(exit) => {
            let how = match exit {
                Exit::Code(code) => format!("exit code {code}"),
                Exit::Signal(signal) => match signals::name(signal) {
                    Some(name) => format!("killed by SIG{name}"),
                    None => format!("killed by signal {signal}"),
                },
            };
            say(format_args!("the program of {id} has ended: {how}"));
            if far {
                return Ok(Ending::of_exit(exit));
            }
        }
        Over::Lost(why) => {
            let why = why.map_or_else(|| format!("session {id} is gone"), |why| format!("{id}: {why}"));
            return Err(Failed(why, code::IO));
        }
        Over::Signal(signal) => return Ok(Ending::Signal(signal)),
    }
    Ok(Ending::Code(0))
}

/// How it ended.
enum Over {
    Detached,
    Exited(Exit),
    /// With what was said last, if anything was.
    Lost(Option<String>),
    Signal(i32),
}

struct View {
    detach_keys: Keys,
    own: WinSize,
    session: WinSize,
    /// What the session shows, to paint from.
    term: Term,
    attachment: Attachment,
    keyboard: Keyboard,
    terminal: Sink,
    filter: ReplayFilter,
    watch: ModeWatch,
    crop: Crop,
    /// The session has another size than this terminal.
    cropping: bool,
    set_modes: Vec<u8>,
    out: Vec<u8>,
    clock: Clock,
    painted_ns: u64,
    message_until: Option<u64>,
    drives: bool,
    driver: Option<String>,
    /// What the other side has complained about, not of anything in particular.
    complaint: Option<String>,
    offset: u64,
    /// What comes is a picture to begin from, not the stream yet.
    restoring: bool,
    /// Nothing has been shown so far.
    first: bool,
}

impl View {
    fn follow(&mut self) -> Result<Over, Failed> {
        self.open_curtain();
        // The screen may have come together with the answer.
        if let Some(over) = self.receive()? {
            return Ok(over);
        }
        loop {
            self.flush();
            let now = self.clock.now().mono_ns;
            let mut deadline = self.message_until;
            if self.cropping && self.needs_paint() {
                let at = self.painted_ns + PAINT_NS;
                deadline = Some(deadline.map_or(at, |d| d.min(at)));
            }
            if self.attachment.has_more() {
                deadline = Some(now);
            }
            let limit = deadline.map(|at| Duration::from_nanos(at.saturating_sub(now)));
            let pressed = {
                let (fd, writes) = self.attachment.wants();
                let flags = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
                self.keyboard.wait_beside(limit, &mut fds).map_err(|e| Failed(e.to_string(), code::IO))?
            };
            match pressed {
                Pressed::Keys(keys) => {
                    if let Some(over) = self.typed(&keys)? {
                        return Ok(over);
                    }
                }
                Pressed::Repaint => self.resized()?,
                Pressed::Signal(signal) => return Ok(Over::Signal(signal)),
                Pressed::Nothing => {}
            }
            self.attachment.flush()?;
            if let Some(over) = self.receive()? {
                return Ok(over);
            }
            let now = self.clock.now().mono_ns;
            if self.message_until.is_some_and(|until| now >= until) {
                self.message_until = None;
                self.repaint();
            }
            if self.cropping && self.needs_paint() && now >= self.painted_ns + PAINT_NS {
                self.paint();
            }
        }
    }

    /// Clears the screen, with what was on it kept above.
    fn open_curtain(&mut self) {
        if self.keyboard.screen_size().is_none() {
            return;
        }
        let rows = usize::from(self.own.or_default().rows);
        self.out.extend(std::iter::repeat_n(b'\n', rows));
        self.out.extend_from_slice(b"\x1b[!p\x1b[m\x1b[H\x1b[2J");
    }

    fn receive(&mut self) -> Result<Option<Over>, Failed> {
        for incoming in self.attachment.receive()? {
            match incoming {
                Incoming::Output(bytes) => self.output(&bytes),
                Incoming::Control(control) => {
                    if let Some(over) = self.control(&control) {
                        // What came before belongs on the screen.
                        if self.cropping {
                            self.paint();
                        }
                        return Ok(Some(over));
                    }
                }
                Incoming::End => return Ok(Some(Over::Lost(self.complaint.take()))),
            }
            if self.out.len() > 1 << 20 {
                self.flush();
            }
        }
        Ok(None)
    }

    fn output(&mut self, bytes: &[u8]) {
        self.term.feed(bytes, self.offset);
        self.offset += bytes.len() as u64;
        self.watch.feed(bytes);
        if self.restoring {
            // It is for a terminal that remembers both its screens, which not every one does; ours is painted from the
            // model. The filter has to know where in a sequence the stream goes on.
            self.filter.filter(bytes, &mut Vec::new());
        } else if !self.cropping {
            self.filter.filter(bytes, &mut self.out);
        }
    }

    /// The model is complete: from here on the stream goes on.
    fn go_live(&mut self) {
        self.restoring = false;
        if self.keyboard.screen_size().is_none() {
            return;
        }
        self.choose();
        if !std::mem::replace(&mut self.first, false) || self.cropping {
            self.repaint();
        } else {
            self.out.extend_from_slice(&self.term.dump_to_terminal());
        }
    }

    fn control(&mut self, control: &Value) -> Option<Over> {
        match control["type"].as_str().unwrap_or("") {
            "live" => self.go_live(),
            "resize" => {
                self.session = WinSize::cells(side(control, "cols"), side(control, "rows"));
                self.term.resize(model_size(self.session));
                self.choose();
            }
            "gap" => {
                // The screen comes anew; what is known of the old one is worth nothing.
                self.session = WinSize::cells(side(control, "cols"), side(control, "rows"));
                self.term =
                    Term::new(model_size(self.session), Settings { replies: false, ..Settings::default() });
                self.filter = ReplayFilter::new(FilterOptions::default());
                self.crop.forget();
                self.restoring = true;
            }
            "driver" => {
                self.drives = control["you"].as_bool().unwrap_or(false);
                let was = std::mem::replace(&mut self.driver, control["driver"].as_str().map(str::to_owned));
                if self.drives {
                    let _ = self.attachment.resize(self.own);
                } else if let Some(driver) = self.driver.clone().filter(|d| was.as_ref() != Some(d)) {
                    self.message(&format!("{} drives", human::printable(&driver)));
                }
            }
            "denied" => {
                let why = match (control["error"].as_str(), control["driver"].as_str()) {
                    (_, Some(driver)) => format!("{} drives", human::printable(driver)),
                    (Some(error), None) => human::printable(error),
                    (None, None) => "refused".into(),
                };
                let how = match self.detach_keys.as_ref().and_then(DetachKeys::prefix) {
                    Some(prefix) if control["error"] != "read-only" => format!(": {prefix} t takes over"),
                    _ => String::new(),
                };
                self.message(&format!("{why}{how}"));
            }
            "exit" => {
                let signal = control["signal"].as_str().and_then(signals::number).map(Exit::Signal);
                let code = control["code"].as_i64().and_then(|c| i32::try_from(c).ok()).unwrap_or(1);
                return Some(Over::Exited(signal.unwrap_or(Exit::Code(code))));
            }
            "error" if control["about"].is_null() => {
                self.complaint = control["message"].as_str().map(human::printable);
            }
            _ => {}
        }
        None
    }

    fn typed(&mut self, keys: &[u8]) -> Result<Option<Over>, Failed> {
        let typed = match &mut self.detach_keys {
            Some(detach) => detach.read(keys),
            None => vec![Typed::Through(keys.to_vec())],
        };
        for typed in typed {
            match typed {
                Typed::Through(bytes) => {
                    if self.drives && self.session != self.own_cells() {
                        // Whoever types has the session in their size.
                        self.attachment.resize(self.own)?;
                    }
                    self.attachment.type_bytes(&bytes)?;
                }
                Typed::Detach => return Ok(Some(Over::Detached)),
                Typed::Take => self.attachment.control(&json!({"type": "take"}))?,
                Typed::Release => self.attachment.control(&json!({"type": "release"}))?,
            }
        }
        Ok(None)
    }

    fn resized(&mut self) -> Result<(), Failed> {
        if let Some(size) = self.keyboard.screen_size() {
            self.own = size;
            if self.drives {
                self.attachment.resize(size)?;
            }
        }
        if !self.restoring {
            self.choose();
            self.repaint();
        }
        Ok(())
    }

    fn own_cells(&self) -> WinSize {
        let own = self.own.or_default();
        WinSize::cells(own.cols, own.rows)
    }

    /// Passes bytes through, or paints, as the sizes have it.
    fn choose(&mut self) {
        let cropping = self.keyboard.screen_size().is_some() && self.session != self.own_cells();
        if cropping == self.cropping {
            self.crop.forget();
            return;
        }
        self.cropping = cropping;
        self.crop.forget();
        if cropping {
            self.out.extend_from_slice(b"\x1b[?1049h");
        } else {
            self.out.extend_from_slice(b"\x1b[?1049l");
            if !self.restoring {
                self.repaint();
            }
        }
    }

    fn needs_paint(&self) -> bool {
        !self.restoring && self.crop_is_stale() && !self.term.modes().synchronised()
    }

    fn crop_is_stale(&self) -> bool {
        self.crop.seen() != Some(self.term.generation())
    }

    fn paint(&mut self) {
        self.painted_ns = self.clock.now().mono_ns;
        let own = self.own.or_default();
        self.crop.paint(&self.term, own.cols, own.rows, &mut self.out);
        // Keys are to be spelt as the program wants them.
        let modes = self.watch.redo();
        if modes != self.set_modes {
            self.out.extend_from_slice(&modes);
            self.set_modes = modes;
            self.crop.forget();
        }
    }

    /// Draws everything anew.
    fn repaint(&mut self) {
        if self.cropping {
            self.crop.forget();
            self.paint();
        } else {
            self.out.extend_from_slice(&self.term.dump_screen());
        }
    }

    /// A line of ours over the last row, for a moment.
    fn message(&mut self, text: &str) {
        if !self.keyboard.is_there() {
            return;
        }
        let own = self.own.or_default();
        let text: String = text.chars().take(usize::from(own.cols).saturating_sub(2)).collect();
        let line = format!("\x1b7\x1b[{};1H\x1b[0;7m {text} \x1b[m\x1b8", own.rows);
        self.out.extend_from_slice(line.as_bytes());
        self.message_until = Some(self.clock.now().mono_ns + MESSAGE_NS);
    }

    /// Gives the terminal back in order.
    fn leave(&mut self) -> Result<(), Failed> {
        if self.keyboard.screen_size().is_some() {
            if self.message_until.take().is_some() {
                self.repaint();
            }
            self.out.extend_from_slice(&self.watch.undo());
            if self.cropping {
                self.out.extend_from_slice(b"\x1b[?1049l\x1b[?25h");
            } else {
                let rows = self.own.or_default().rows;
                self.out.extend_from_slice(format!("\x1b[m\x1b[{rows};1H\r\n").as_bytes());
            }
        }
        self.flush();
        Ok(())
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

    /// Waits until the terminal has taken everything. A connection that is kept up from here must not wait with us.
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
                // If it has failed, whoever reads next is told.
                lives = self.attachment.tend().is_ok();
            }
            self.terminal.flush()?;
        }
        Ok(())
    }
}

fn side(value: &Value, key: &str) -> u16 {
    value[key].as_u64().and_then(|n| u16::try_from(n).ok()).unwrap_or(1).max(1)
}

fn model_size(size: WinSize) -> Size {
    Size::new(size.cols, size.rows)
}
