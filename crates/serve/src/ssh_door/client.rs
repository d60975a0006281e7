//! One client: authenticated by its key, then served channel by channel.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use russh::keys::PublicKey;
use russh::server::{Auth, Handler, Msg, Session};
use russh::{Channel, ChannelId, Pty};
use tapdeck_core::WinSize;

use super::keys::{Grant, grant};
use super::terminal::{refuse, show};
use super::{ClientTerminal, Request, SshDoor};
use crate::admission::Seat;

/// The most channels of a client.
const CHANNELS: usize = 8;
/// The longest request of a client.
const WORDS: usize = 4096;

/// A client of the door.
pub(super) struct Client {
    door: Arc<SshDoor>,
    from: IpAddr,
    user: String,
    grant: Option<Grant>,
    seat: Seat,
    /// A key was offered, and is not in the list.
    has_failed: bool,
    /// Channels on which nothing runs yet.
    waiting: HashMap<ChannelId, (Channel<Msg>, Option<ClientTerminal>)>,
    opened: usize,
}

impl Client {
    /// Makes a client from this address.
    pub(super) fn new(door: Arc<SshDoor>, from: IpAddr, seat: Seat) -> Self {
        Self {
            door,
            from,
            user: String::new(),
            grant: None,
            seat,
            has_failed: false,
            waiting: HashMap::new(),
            opened: 0,
        }
    }

    fn judge(&mut self, key: &PublicKey) -> Option<Grant> {
        let found = grant(&self.door.authorized_keys, key, self.from);
        self.has_failed |= found.is_none();
        found
    }

    /// Starts what was asked for on a channel.
    fn begin(
        &mut self,
        id: ChannelId,
        command: Option<String>,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        let (Some((channel, terminal)), Some(grant)) = (self.waiting.remove(&id), self.grant.clone()) else {
            return session.channel_failure(id);
        };
        session.channel_success(id)?;
        let request = Request { user: self.user.clone(), command, grant, terminal: terminal.is_some() };
        match (self.door.dispatch)(&request) {
            Ok(command) => tokio::spawn(show(channel, command, terminal, self.door.signals)),
            Err(denied) => tokio::spawn(refuse(channel, denied.message, denied.exit_code)),
        };
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.grant.is_none() {
            // A client offers all its keys, so they count as one attempt.
            if self.has_failed {
                self.seat.note_failure();
            }
            tracing::warn!(door = "ssh", peer = %self.from, error = "no_key", "refused");
        }
    }
}

fn cells(n: u32) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// Returns the size of a client's terminal.
pub(super) fn size(cols: u32, rows: u32, x: u32, y: u32) -> WinSize {
    WinSize { cols: cells(cols), rows: cells(rows), x_pixels: cells(x), y_pixels: cells(y) }
}

impl Handler for Client {
    type Error = russh::Error;

    async fn auth_publickey_offered(&mut self, _user: &str, key: &PublicKey) -> Result<Auth, russh::Error> {
        Ok(if self.judge(key).is_some() { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_publickey(&mut self, user: &str, key: &PublicKey) -> Result<Auth, russh::Error> {
        let Some(grant) = self.judge(key) else { return Ok(Auth::reject()) };
        if let Err(why) = self.seat.admit() {
            tracing::warn!(door = "ssh", peer = %self.from, %why, "refused");
            return Ok(Auth::reject());
        }
        self.user = user.chars().take(WORDS).collect();
        self.grant = Some(grant);
        tracing::info!(door = "ssh", peer = %self.from, user = self.user, "admitted");
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        _: &mut Session,
    ) -> Result<bool, russh::Error> {
        self.opened += 1;
        if self.waiting.len() >= CHANNELS || self.opened > CHANNELS * 8 {
            return Ok(false);
        }
        self.waiting.insert(channel.id(), (channel, None));
        Ok(true)
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        term: &str,
        cols: u32,
        rows: u32,
        x: u32,
        y: u32,
        _modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        let Some((_, terminal)) = self.waiting.get_mut(&id) else { return session.channel_failure(id) };
        // The name goes into the environment of a program, and from there into a path.
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c);
        let named = !term.is_empty() && term.len() < 64 && !term.starts_with('.') && term.chars().all(plain);
        let term = if named { term } else { "dumb" };
        *terminal = Some(ClientTerminal { term: term.to_owned(), size: size(cols, rows, x, y) });
        session.channel_success(id)
    }

    async fn shell_request(&mut self, id: ChannelId, session: &mut Session) -> Result<(), russh::Error> {
        self.begin(id, None, session)
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        let words = String::from_utf8_lossy(&data[..data.len().min(WORDS)]).into_owned();
        self.begin(id, Some(words), session)
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        _: &str,
        _: &str,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        session.channel_failure(id)
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        _: &str,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        session.channel_failure(id)
    }
}
