//! A session of another process on this machine, reached through its bus.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tapdeck_core::Exit;
use tapdeck_core::turns::AgentState;
use tapdeck_host::{Clock, signals};
use tapdeck_serve::client::{self, ANSWER, Bus, Hello};

use crate::cond::Seen;
use crate::live::{Address, Listing};
use crate::session::RemoteUpdates;
use crate::{Cond, Error, Result, Screen, Updates};

/// A session of another process: find it, watch it, drive it. It acts as a program, so a person who
/// holds the stick keeps it. Clones are the same connection; any thread may use one.
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
pub struct Remote(Arc<Inner>);

struct Inner {
    listing: Listing,
    bus: Mutex<Bus>,
}

/// The name under which it joins.
const NAME: &str = "library";

#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    ansi: Vec<String>,
    cols: u16,
    rows_n: u16,
    cx: u16,
    cy: u16,
    #[serde(default)]
    title: String,
}

/// Something that the session pushes; each event has some of these.
#[derive(Deserialize)]
struct Pushed {
    name: String,
    #[serde(default)]
    who: Option<String>,
    #[serde(default)]
    bytes: Option<u64>,
    #[serde(default)]
    turn_id: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    exit: Option<Ending>,
}

#[derive(Deserialize)]
struct Ending {
    #[serde(default)]
    code: Option<i32>,
    #[serde(default)]
    signal: Option<Signal>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Signal {
    Number(i32),
    Name(String),
}

impl Ending {
    fn exit(self) -> Option<Exit> {
        let signal = match self.signal {
            Some(Signal::Number(number)) => Some(number),
            Some(Signal::Name(name)) => signals::number(&name),
            None => None,
        };
        signal.map(Exit::Signal).or(self.code.map(Exit::Code))
    }
}

#[derive(Deserialize)]
struct Explained {
    state: String,
}

#[derive(Deserialize)]
struct FullTurn {
    #[serde(default)]
    text: String,
    #[serde(default)]
    input: String,
    #[serde(default)]
    interrupted: bool,
}

/// Connects to a session without claiming its stick: typing claims it where it is free.
fn join(listing: &Listing, role: &str) -> Result<Bus> {
    let mut bus = Bus::connect(&Address::Unix(listing.socket.clone()))?;
    bus.hello_to_watch(&Hello { role, name: NAME, token: Some(&listing.human_token) }, ANSWER)?;
    Ok(bus)
}

impl Remote {
    /// Finds a live session by its id, its name, or the beginning of one.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub fn find(which: &str) -> Result<Self> {
        let listing = client::find(Some(which))?;
        let bus = Mutex::new(join(&listing, "bot")?);
        Ok(Self(Arc::new(Inner { listing, bus })))
    }

    /// Lists the live sessions of this user.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn list() -> Result<Vec<Listing>> {
        client::alive().map(|(_, found)| found).map_err(Error::io("cannot list the live sessions"))
    }

    /// What the session says about itself.
    pub fn listing(&self) -> &Listing {
        &self.0.listing
    }

    /// Types text; line ends are the Enter key.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn type_text(&self, text: &str) -> Result<()> {
        self.tell("KEY", &json!({"text": text, "confirm": true}))
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
        self.tell("KEY", &json!({"keys": [key], "confirm": true}))
    }

    /// Pastes text, bracketed where the program asked for it.
    ///
    /// # Errors
    /// As [`Remote::type_text`].
    pub fn paste(&self, text: &str) -> Result<()> {
        self.tell("KEY", &json!({"paste": text, "confirm": true}))
    }

    /// Sets the terminal's size.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn resize(&self, cols: u16, rows: u16) -> Result<()> {
        self.tell("RESIZE", &json!({"cols": cols, "rows": rows}))
    }

    /// Sends a signal, such as `INT`, to the terminal's foreground process group.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.tell("KILL", &json!({"signal": name}))
    }

    /// The screen as it is now.
    ///
    /// # Errors
    /// When the session does not answer.
    pub fn screen(&self) -> Result<Screen> {
        let frame: Frame = self.ask("SNAP", &json!({"ansi": true}))?;
        let mut output = Vec::new();
        if !frame.title.is_empty() {
            output.extend_from_slice(format!("\x1b]2;{}\x07", frame.title).as_bytes());
        }
        for (y, row) in frame.ansi.iter().enumerate() {
            output.extend_from_slice(format!("\x1b[m\x1b[{};1H{row}", y + 1).as_bytes());
        }
        let (row, col) = (u32::from(frame.cy) + 1, u32::from(frame.cx) + 1);
        output.extend_from_slice(format!("\x1b[m\x1b[{row};{col}H").as_bytes());
        Ok(Screen::of_output(frame.cols, frame.rows_n, &output))
    }

    /// What the program is doing, where rules for its turns say so.
    ///
    /// # Errors
    /// When the session does not answer.
    pub fn state(&self) -> Result<Option<AgentState>> {
        let explained: Explained = self.ask("EXPLAIN", &json!({}))?;
        Ok(explained.state.parse().ok())
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
        let (mut changed_ns, mut exit) = (0, None);
        let mut screen = self.screen()?;
        loop {
            let now = clock.now().mono_ns;
            let quiet = Duration::from_nanos(now.saturating_sub(changed_ns));
            let state = if cond.asks_state() { self.state()? } else { None };
            if cond.holds(&Seen { term: screen.term(), state, quiet }) {
                return Ok(screen);
            }
            let (wanted, shown) = (cond.to_string(), Box::new(screen.clone()));
            if let Some(exit) = exit {
                return Err(Error::Ended { exit, wanted, screen: shown });
            }
            let left = within.saturating_sub(Duration::from_nanos(now));
            if left.is_zero() {
                return Err(Error::Timeout { after: within, wanted, screen: shown });
            }
            let pause = cond.pause().map_or(left, |pause| pause.saturating_sub(quiet));
            let update = updates.next_within(left.min(pause.max(Duration::from_millis(1))));
            if let Some(crate::Update::Closed(ended)) = update {
                exit = Some(ended.unwrap_or(Exit::Code(0)));
            }
            let new = self.screen()?;
            if new != screen {
                changed_ns = clock.now().mono_ns;
                screen = new;
            }
        }
    }

    /// Asks the program to end.
    ///
    /// # Errors
    /// When the session is over or refuses.
    pub fn stop(&self) -> Result<()> {
        self.tell("KILL", &json!({}))
    }

    /// What happens in the session from now on, as typed updates, over a connection of its own.
    ///
    /// # Errors
    /// When the session does not answer.
    pub fn subscribe(&self) -> Result<Updates> {
        let mut bus = join(&self.0.listing, "observer")?;
        bus.ask("SUB", &json!({"frames": "full", "out": false}).to_string(), ANSWER)?;
        Ok(Updates::remote(RemoteUpdates { remote: self.clone(), bus, closed: false }))
    }

    fn bus(&self) -> MutexGuard<'_, Bus> {
        self.0.bus.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, verb: &str, payload: &serde_json::Value) -> Result<()> {
        self.bus().ask(verb, &payload.to_string(), ANSWER)?;
        Ok(())
    }

    fn ask<T: DeserializeOwned>(&self, verb: &str, payload: &serde_json::Value) -> Result<T> {
        let frame = self.bus().ask(verb, &payload.to_string(), ANSWER)?;
        serde_json::from_str(&frame.payload)
            .map_err(|e| Error::Invalid(format!("the session's answer to {verb} makes no sense: {e}")))
    }

    /// What a pushed frame says, if anything.
    pub(crate) fn update(&self, frame: &client::Frame) -> Option<crate::Update> {
        use crate::Update;
        if frame.verb == "FRAME" {
            return self.screen().ok().map(|screen| Update::Frame(Box::new(screen)));
        }
        if frame.verb != "EVENT" {
            return None;
        }
        let event: Pushed = serde_json::from_str(&frame.payload).ok()?;
        Some(match event.name.as_str() {
            "DRIVER" => Update::Holder(event.who.map(Into::into)),
            "GAP" => Update::Gap(event.bytes.unwrap_or(0)),
            "CLOSED" => Update::Closed(event.exit.and_then(Ending::exit)),
            "STATE" => {
                Update::State { state: event.state?.parse().ok()?, rule: event.rule.unwrap_or_default() }
            }
            "TURN" => {
                let number: u32 = event.turn_id?.rsplit(':').next()?.parse().ok()?;
                let turn: FullTurn = self.ask("TURN", &json!({"number": number})).ok()?;
                let FullTurn { text, input, interrupted } = turn;
                Update::Turn { number, input, text, interrupted }
            }
            _ => return None,
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("id", &self.0.listing.id).finish_non_exhaustive()
    }
}
