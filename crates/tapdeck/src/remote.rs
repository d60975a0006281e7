//! A session of another process: on this machine through its bus, behind a server through the
//! attach wire.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapdeck_core::Exit;
use tapdeck_core::turns::AgentState;
use tapdeck_host::Clock;
use tapdeck_proto::bus::{
    self, Answered, Ask, Event, Explain, Explained, Frames, Key, Kill, Pasted, Release, Resize, Snap, Sub,
    Take, Typing, WhichTurn,
};
use tapdeck_serve::client::{self, ANSWER, Asked, Bus, Choice, ClientError, Role};
#[cfg(feature = "net")]
use tapdeck_term::keys;

use crate::cond::Seen;
use crate::live::Listing;
use crate::session::RemoteUpdates;
#[cfg(feature = "net")]
use crate::wire_session::WireSession;
use crate::{Cond, Error, Result, Screen, Updates};

/// A session of another process: find it, watch it, drive it. It types only while no person holds
/// the stick. Clones are the same connection; any thread may use one. Dropping the last one leaves
/// the session, which goes on.
///
/// ```no_run
/// use std::time::Duration;
/// use tapdeck::{Remote, row};
///
/// # fn main() -> tapdeck::Result<()> {
/// let session = Remote::find("build")?;
/// session.type_line("make test")?;
/// session.wait_for(row("^test result: ok"), Duration::from_secs(600))?;
/// println!("{}", session.screen()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Remote(Way);

/// How the session is reached.
#[derive(Clone)]
enum Way {
    Bus(Arc<BusSession>),
    #[cfg(feature = "net")]
    Wire(Arc<WireSession>),
}

/// A session on this machine.
pub(crate) struct BusSession {
    listing: Listing,
    bus: Mutex<Bus>,
}

/// The name under which it joins.
pub(crate) const NAME: &str = "library";

impl Remote {
    /// Finds a live session by its id, its name, or the beginning of one.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub fn find(which: &str) -> Result<Self> {
        let listing = client::find(Some(which))?;
        // Typing claims the stick where it is free.
        let bus = Mutex::new(client::connect_to_watch(&listing, NAME, Role::Bot)?);
        Ok(Self(Way::Bus(Arc::new(BusSession { listing, bus }))))
    }

    /// Joins a session that a server knows, over the network: by the session's id, its name, or the
    /// beginning of one. The screen comes from a model in this process, which the server keeps up
    /// to date. Such a session tells no turns, so [`Remote::subscribe`] gives none; the stick is
    /// claimed by typing, resizing and signals while it is free.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tapdeck::{Credentials, Remote, row};
    ///
    /// # fn main() -> tapdeck::Result<()> {
    /// let who = Credentials::token("the token").fingerprint("sha256:…");
    /// let session = Remote::dial("tls://build.example:4433", &who, "build")?;
    /// session.type_line("make test")?;
    /// session.wait_for(row("^test result: ok"), Duration::from_secs(600))?;
    /// println!("{}", session.screen()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the address makes no sense, the server cannot be reached or refuses, or knows no such
    /// session.
    #[cfg(feature = "net")]
    pub fn dial(address: &str, credentials: &crate::Credentials, which: &str) -> Result<Self> {
        Ok(Self(Way::Wire(Arc::new(WireSession::dial(address, credentials, which)?))))
    }

    /// Lists the live sessions of this user.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn list() -> Result<Vec<Listing>> {
        client::alive().map(|(_, found)| found).map_err(Error::io("cannot list the live sessions"))
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        match &self.0 {
            Way::Bus(session) => &session.listing.id,
            #[cfg(feature = "net")]
            Way::Wire(session) => session.id(),
        }
    }

    /// What the session said about itself when it was found; `None` behind a server.
    pub fn listing(&self) -> Option<&Listing> {
        match &self.0 {
            Way::Bus(session) => Some(&session.listing),
            #[cfg(feature = "net")]
            Way::Wire(_) => None,
        }
    }

    /// Types text; line ends are the Enter key.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn type_text(&self, text: &str) -> Result<()> {
        match &self.0 {
            Way::Bus(session) => session.give(Typing { text: Some(text.to_owned()), ..Typing::default() }),
            #[cfg(feature = "net")]
            Way::Wire(session) => session.give(|modes| keys::text(text, modes)),
        }
    }

    /// Types text and presses Enter.
    ///
    /// # Errors
    /// As [`Remote::type_text`].
    pub fn type_line(&self, text: &str) -> Result<()> {
        self.type_text(&format!("{text}\n"))
    }

    /// Presses a key by its name.
    ///
    /// # Errors
    /// As [`Remote::type_text`]; also when there is no such key.
    pub fn press(&self, key: &str) -> Result<()> {
        match &self.0 {
            Way::Bus(session) => {
                session.give(Typing { keys: Some(vec![key.to_owned()]), ..Typing::default() })
            }
            #[cfg(feature = "net")]
            Way::Wire(session) => {
                let press: keys::KeyPress =
                    key.parse().map_err(|e: keys::KeyNameError| Error::Invalid(e.to_string()))?;
                session.give(|modes| keys::encode(press, modes))
            }
        }
    }

    /// Pastes text, bracketed where the program asked for it.
    ///
    /// # Errors
    /// As [`Remote::type_text`].
    pub fn paste(&self, text: &str) -> Result<()> {
        match &self.0 {
            Way::Bus(session) => session.give(Typing { paste: Some(text.to_owned()), ..Typing::default() }),
            #[cfg(feature = "net")]
            Way::Wire(session) => session.give(|modes| keys::paste(text, modes)),
        }
    }

    /// Sets the terminal's size.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn resize(&self, cols: u16, rows: u16) -> Result<()> {
        match &self.0 {
            Way::Bus(session) => session.command(&Resize { cols, rows }),
            #[cfg(feature = "net")]
            Way::Wire(session) => session.resize(cols, rows),
        }
    }

    /// Sends a signal, such as `INT`, to the terminal's foreground process group.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn signal(&self, name: &str) -> Result<()> {
        match &self.0 {
            Way::Bus(session) => session.command(&Kill { signal: Some(name.to_owned()) }),
            #[cfg(feature = "net")]
            Way::Wire(session) => session.signal(name),
        }
    }

    /// The screen as it is now.
    ///
    /// # Errors
    /// When the session does not answer.
    pub fn screen(&self) -> Result<Screen> {
        match &self.0 {
            Way::Bus(session) => session.screen(),
            #[cfg(feature = "net")]
            Way::Wire(session) => Ok(session.screen()),
        }
    }

    /// What the program is doing, where rules for its turns say so.
    ///
    /// # Errors
    /// When the session does not answer.
    pub fn state(&self) -> Result<Option<AgentState>> {
        match &self.0 {
            Way::Bus(session) => Ok(state_of(session.ask(&Explain)?.judged.state)),
            #[cfg(feature = "net")]
            Way::Wire(session) => Ok(session.state()),
        }
    }

    /// What the program is doing, the rule and the rows that say so, and the question that it asks.
    ///
    /// # Errors
    /// When the session finds no states or does not answer; also behind a server.
    pub fn explain(&self) -> Result<Explained> {
        Ok(client::explain(&mut self.on_bus()?.bus())?)
    }

    /// The turns that the session keeps, the oldest first, with their texts.
    ///
    /// # Errors
    /// When the session does not answer; also behind a server.
    pub fn turns(&self) -> Result<Vec<bus::Turn>> {
        Ok(client::turns(&mut self.on_bus()?.bus())?)
    }

    /// Submits a prompt, and confirms that the program took it. Waits until the program is ready,
    /// pastes the text, waits until its end is on the screen and presses Enter once. Each of these
    /// steps may take as long as `step`.
    ///
    /// # Errors
    /// When the text is too long, or the session is over or refuses; also behind a server.
    pub fn submit(&self, text: &str, step: Duration) -> Result<Pasted> {
        Ok(client::submit(&mut self.on_bus()?.bus(), text, step)?)
    }

    /// Submits a prompt and waits for the answer to it. The
    /// [`AskOutcome`](crate::turns::AskOutcome) tells whether there is one: the program may ask
    /// back instead, and be answered with [`Remote::answer`].
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tapdeck::Remote;
    /// use tapdeck::turns::{AskOutcome, Choice};
    ///
    /// # fn main() -> tapdeck::Result<()> {
    /// let agent = Remote::find("claude")?;
    /// let asked = agent.ask("Which tests fail?", Duration::from_secs(300))?;
    /// match asked.outcome {
    ///     AskOutcome::Answered => println!("{}", asked.answer.unwrap_or_default()),
    ///     AskOutcome::Blocked => drop(agent.answer(&Choice::No)?),
    ///     other => println!("{}: {}", other.name(), asked.evidence),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Remote::submit`]; also when the session finds no turns.
    pub fn ask(&self, text: &str, within: Duration) -> Result<Asked> {
        let session = self.on_bus()?;
        match session.ask(&Release) {
            // Without the stick there is nothing to release.
            Ok(_) | Err(Error::Remote(ClientError::Denied(_))) => {}
            Err(e) => return Err(e),
        }
        // A connection of its own, which ends with its subscription.
        let mut bus = client::connect_to_watch(&session.listing, NAME, Role::Bot)?;
        Ok(client::ask(&mut bus, text, within)?)
    }

    /// Answers the question that the program asks, and confirms that it was taken. Only the
    /// question that stands there now is answered: if it changes meanwhile, nothing is sent.
    ///
    /// # Errors
    /// When the session is over or refuses; also behind a server.
    pub fn answer(&self, choice: &Choice) -> Result<Answered> {
        Ok(client::answer(&mut self.on_bus()?.bus(), choice, None)?)
    }

    /// Waits until the condition holds, and returns the screen of that moment.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the screen when the time has passed, [`Error::Ended`] when the
    /// program ended before.
    pub fn wait_for(&self, cond: impl Into<Cond>, within: Duration) -> Result<Screen> {
        let cond = cond.into().checked()?;
        // Before the first look, so that nothing is missed in between.
        let mut updates = self.subscribe()?;
        let clock = Clock::start();
        let (mut changed, mut exit): (_, Option<Exit>) = (Duration::ZERO, None);
        let mut screen = self.screen()?;
        loop {
            let now = clock.elapsed();
            let quiet = now.saturating_sub(changed);
            let state = if cond.asks_state() { self.state()? } else { None };
            if cond.holds(&Seen { term: screen.term(), state, quiet }) {
                return Ok(screen);
            }
            let (wanted, shown) = (cond.to_string(), Box::new(screen.clone()));
            if let Some(exit) = exit {
                return Err(Error::Ended { exit, wanted, screen: shown });
            }
            let left = within.saturating_sub(now);
            if left.is_zero() {
                return Err(Error::Timeout { after: within, wanted, screen: shown });
            }
            let pause = cond.pause().map_or(left, |pause| pause.saturating_sub(quiet));
            let update = updates.next_within(left.min(pause.max(Duration::from_millis(1))));
            match update {
                Some(crate::Update::Closed(Some(ended))) => exit = Some(ended),
                // The connection is gone, and with it how the program goes on.
                Some(crate::Update::Closed(None)) => return Err(Error::Over),
                _ => {}
            }
            let new = self.screen()?;
            if new != screen {
                changed = clock.elapsed();
                screen = new;
            }
        }
    }

    /// Ends the session as [`Session::stop`](crate::Session::stop) does: the program is asked to
    /// end, and killed if it does not. Returns when the session has been told.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn stop(&self) -> Result<()> {
        match &self.0 {
            Way::Bus(session) => session.command(&Kill::default()),
            #[cfg(feature = "net")]
            Way::Wire(session) => session.kill(),
        }
    }

    /// What happens in the session from now on, as typed updates.
    ///
    /// # Errors
    /// When the session does not answer.
    pub fn subscribe(&self) -> Result<Updates> {
        match &self.0 {
            Way::Bus(session) => {
                let mut bus = client::connect_to_watch(&session.listing, NAME, Role::Observer)?;
                bus.request(&Sub { frames: Frames::Full, out: false, ..Sub::default() }, ANSWER)?;
                Ok(Updates::remote(RemoteUpdates { session: Arc::clone(session), bus, closed: false }))
            }
            #[cfg(feature = "net")]
            Way::Wire(session) => Ok(Updates::wire(session.subscribe())),
        }
    }
}

impl Remote {
    /// Returns the session's bus, which only a session on this machine has.
    fn on_bus(&self) -> Result<&BusSession> {
        match &self.0 {
            Way::Bus(session) => Ok(session),
            #[cfg(feature = "net")]
            Way::Wire(_) => {
                let why =
                    "turns, prompts and answers need the session's bus: run this on the host of the session";
                Err(Error::Invalid(why.to_owned()))
            }
        }
    }
}

impl BusSession {
    fn screen(&self) -> Result<Screen> {
        let frame = self.ask(&Snap { ansi: true, ..Snap::default() })?;
        Ok(Screen::of_frame(&frame))
    }

    fn bus(&self) -> MutexGuard<'_, Bus> {
        self.bus.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Types, and returns when the session has taken it.
    fn give(&self, typing: Typing) -> Result<()> {
        self.ask(&Key::Typed(Typing { confirm: true, ..typing })).map(drop)
    }

    /// Sends a request that only the holder of the stick may make, and takes the stick for it. A
    /// person who holds it keeps it.
    fn command<A: Ask>(&self, asked: &A) -> Result<()> {
        match self.ask(asked) {
            Err(Error::Remote(ClientError::Denied(_))) => {
                self.ask(&Take)?;
                self.ask(asked).map(drop)
            }
            answered => answered.map(drop),
        }
    }

    fn ask<A: Ask>(&self, asked: &A) -> Result<A::Reply> {
        Ok(self.bus().request(asked, ANSWER)?)
    }

    /// Returns the update that a pushed frame tells of, if any.
    pub(crate) fn update(&self, frame: &client::Frame) -> Option<crate::Update> {
        use crate::Update;
        if frame.verb == "FRAME" {
            // A session that has ended no longer answers; its last frames still have their text.
            let pushed = || serde_json::from_str::<bus::Screen>(&frame.payload).ok();
            let screen = self.screen().ok();
            let screen = screen.or_else(|| pushed().map(|frame| drawn(&frame, &frame.contents.rows)));
            return screen.map(|screen| Update::Frame(Box::new(screen)));
        }
        Some(match frame.event()? {
            Event::Driver { who, .. } => Update::Holder(who.map(Into::into)),
            Event::Gap { bytes, .. } => Update::Gap(bytes),
            Event::Closed { exit } => Update::Closed(Some(client::exit_of(&exit))),
            Event::State(judged) => Update::State { state: state_of(judged.state)?, rule: judged.rule },
            Event::Turn(turn) => {
                let number: u32 = turn.turn_id.rsplit(':').next()?.parse().ok()?;
                let turn =
                    self.ask(&WhichTurn { number: Some(number.into()), ..WhichTurn::default() }).ok()?;
                let bus::TurnDetail { text, input, .. } = turn.detail?;
                Update::Turn { number, input, text, interrupted: turn.interrupted }
            }
            _ => return None,
        })
    }
}

impl Screen {
    /// The screen of a frame of the bus, with its rows as they were sent: with escape sequences, if
    /// the request asked for them.
    pub fn of_frame(frame: &bus::Screen) -> Self {
        drawn(frame, frame.ansi.as_deref().unwrap_or(&frame.contents.rows))
    }
}

/// Returns the screen of a frame with these rows.
fn drawn(frame: &bus::Screen, rows: &[String]) -> Screen {
    let mut output = Vec::new();
    if !frame.title.is_empty() {
        output.extend_from_slice(format!("\x1b]2;{}\x07", frame.title).as_bytes());
    }
    for (y, row) in rows.iter().enumerate() {
        output.extend_from_slice(format!("\x1b[m\x1b[{};1H{row}", y + 1).as_bytes());
    }
    let bus::Contents { cx, cy, cursor, .. } = &frame.contents;
    let (row, col) = (u32::from(*cy) + 1, u32::from(*cx) + 1);
    let shape = match cursor.shape {
        bus::CursorShape::Block => "",
        bus::CursorShape::Underline => "\x1b[4 q",
        bus::CursorShape::Bar => "\x1b[6 q",
    };
    output.extend_from_slice(format!("\x1b[m\x1b[{row};{col}H{shape}").as_bytes());
    if !cursor.visible {
        output.extend_from_slice(b"\x1b[?25l");
    }
    Screen::of_output(frame.cols, frame.rows_n, &output)
}

/// Returns the state that the bus names; `None` for one that this version does not know.
pub(crate) fn state_of(state: bus::AgentState) -> Option<AgentState> {
    state.name().parse().ok()
}

impl fmt::Debug for BusSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusSession").field("id", &self.listing.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("id", &self.id()).finish_non_exhaustive()
    }
}
