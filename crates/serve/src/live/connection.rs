//! A client's connection: bytes in, bytes out, and how long each has taken.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::Time;
use tapdeck_proto::attach;
use tapdeck_proto::bus::{Line, MAX_AGREED, Reply};

use super::queue::Queue;
use crate::conn::Conn;
use crate::wire;

/// With this much waiting it is not served at all any more.
const HOPELESS: usize = 2 * MAX_AGREED;
const READ: usize = 64 * 1024;
/// How long a client may take nothing while something waits.
const STUCK: Duration = Duration::from_secs(30);

/// A client's connection.
pub(crate) struct Connection {
    pub(crate) socket: Conn,
    pub(crate) inbox: Vec<u8>,
    pub(crate) queue: Queue,
    pub(crate) came: Time,
    /// When the client last took something, while something waits.
    took: Time,
    /// Nothing is sent before this time.
    pub(crate) held_until: Option<Time>,
    /// To be closed once everything has been sent.
    pub(crate) closing: bool,
    /// Gone.
    pub(crate) gone: bool,
}

impl Connection {
    pub(crate) fn new(socket: Conn, now: Time) -> Self {
        Self {
            socket,
            inbox: Vec::new(),
            queue: Queue::default(),
            came: now,
            took: now,
            held_until: None,
            closing: false,
            gone: false,
        }
    }

    /// Reads what has come. Returns whether there is something to look at.
    pub(crate) fn read(&mut self) -> bool {
        let start = self.inbox.len();
        self.inbox.resize(start + READ, 0);
        match self.socket.read(&mut self.inbox[start..]) {
            Ok(0) => self.gone = true,
            Ok(n) => {
                self.inbox.truncate(start + n);
                return true;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.gone = true,
        }
        self.inbox.truncate(start);
        false
    }

    pub(crate) fn send(&mut self, piece: impl Into<Bytes>) {
        if self.gone {
            return;
        }
        self.queue.push(piece);
        if self.queue.len() > HOPELESS {
            self.gone = true;
        }
    }

    /// Sends a line of the bus.
    pub(crate) fn line(&mut self, id: Option<&str>, verb: &str, payload: &str) {
        self.send(format!("{}\n", Line { verb, id, payload }));
    }

    /// Sends the reply to the request with this id.
    pub(crate) fn reply(&mut self, id: Option<&str>, reply: &Reply) {
        self.line(id, reply.verb(), &reply.payload());
    }

    /// Sends a control chunk of the attach wire.
    pub(crate) fn control(&mut self, message: &attach::Said) {
        self.send(wire::control(message));
    }

    /// Sends what the client takes without waiting.
    pub(crate) fn flush(&mut self, now: Time) {
        if self.held_until.is_some_and(|until| now < until) {
            return;
        }
        self.held_until = None;
        let before = self.queue.len();
        if before > 0 && self.queue.flush(&mut self.socket).is_err() {
            self.gone = true;
        }
        if self.queue.len() < before || before == 0 {
            self.took = now;
        }
        if self.closing && self.queue.is_empty() {
            self.gone = true;
        }
    }

    /// Returns when a client that takes nothing is given up.
    pub(crate) fn stuck(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.took + STUCK)
    }

    pub(crate) fn shutdown(&mut self) {
        self.socket.shutdown(Shutdown::Both);
    }
}
