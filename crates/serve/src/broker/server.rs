//! The broker's one thread: sockets on one side, the ledger on the other.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapdeck_core::Time;
use tapdeck_host::{Bell, Clock};
use tapdeck_proto::broker::{Answer, ErrorCode, MAX_FRAME, Message, Refusal, Response, Role};

use super::ledger::{Effect, Ledger, Limits, Sink};
use super::socket;
use crate::conn::Conn;
use crate::door::Door;
use crate::live::Queue;

/// Peers at once.
const PEERS: usize = 4096;
/// How long a peer may take to greet.
const HELLO: Duration = Duration::from_secs(10);
/// A peer that has this much waiting for it is disconnected.
const HOPELESS: usize = 64 << 20;
/// Deliveries at once.
const WRITERS: usize = 16;
const READ: usize = 64 * 1024;

/// Writes a captured turn to a sink. It runs on a thread of its own and may block.
pub(crate) type WriteSink = Arc<dyn Fn(&Sink, &[u8]) -> Result<(), String> + Send + Sync>;

struct Peer {
    conn: Conn,
    inbox: Vec<u8>,
    queue: Queue,
    role: Option<Role>,
    came: Time,
    closing: bool,
    gone: bool,
}

type Answered = Result<Answer, ErrorCode>;

/// Responses of sinks that have finished, each with its peer.
type Done = Arc<Mutex<Vec<(u64, Response)>>>;

/// The broker.
pub struct Broker {
    door: Door,
    clock: Clock,
    ledger: Ledger,
    peers: BTreeMap<u64, Peer>,
    next: u64,
    write: WriteSink,
    writers: Arc<AtomicUsize>,
    done: Done,
    bell: Bell,
    stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("door", &self.door).finish_non_exhaustive()
    }
}

impl Broker {
    /// Opens the broker's socket. A stale socket is replaced; one that another broker serves is an
    /// error.
    ///
    /// # Errors
    /// When the socket cannot be opened.
    pub fn bind(limits: Limits, write: WriteSink) -> io::Result<Self> {
        let door = Door::unix(&socket()?)?;
        Ok(Self {
            door,
            clock: Clock::start(),
            ledger: Ledger::new(limits),
            peers: BTreeMap::new(),
            next: 0,
            write,
            writers: Arc::default(),
            done: Done::default(),
            bell: Bell::new()?,
            stop: Arc::default(),
        })
    }

    /// Returns a function that makes [`Broker::run`] return, to be called from any thread.
    pub fn stopper(&self) -> impl Fn() + Send + use<> {
        let (stop, bell) = (Arc::clone(&self.stop), self.bell.clone());
        move || {
            stop.store(true, Ordering::Release);
            bell.ring();
        }
    }

    /// Serves until it is stopped.
    pub fn run(&mut self) {
        while !self.stop.load(Ordering::Acquire) {
            let (readable, accept) = self.wait();
            let now = self.clock.now().mono;
            self.bell.quieten();
            let done = std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
            for (peer, response) in done {
                self.send(peer, response.frame());
            }
            if accept {
                self.accept(now);
            }
            for number in readable {
                self.serve(number);
            }
            self.flush(now);
        }
    }

    fn wait(&self) -> (Vec<u64>, bool) {
        let now = self.clock.now().mono;
        let late = self.peers.values().filter(|p| p.role.is_none()).map(|p| p.came + HELLO).min();
        let timeout = late.map(|at| {
            let left = at.since(now).max(Duration::from_millis(1));
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        });
        let mut fds = vec![PollFd::from_borrowed_fd(self.bell.fd(), PollFlags::IN)];
        let room = if self.peers.len() < PEERS { PollFlags::IN } else { PollFlags::empty() };
        fds.push(PollFd::from_borrowed_fd(self.door.fd(), room));
        for peer in self.peers.values() {
            let mut flags = if peer.closing { PollFlags::empty() } else { PollFlags::IN };
            if !peer.queue.is_empty() {
                flags |= PollFlags::OUT;
            }
            fds.push(PollFd::new(&peer.conn, flags));
        }
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return (Vec::new(), false);
        }
        let ready = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let readable =
            fds[2..].iter().zip(self.peers.keys()).filter(|(fd, _)| fd.revents().intersects(ready));
        (readable.map(|(_, n)| *n).collect(), !fds[1].revents().is_empty())
    }

    fn accept(&mut self, now: Time) {
        while self.peers.len() < PEERS {
            match self.door.accept() {
                Ok(Some(conn)) if conn.set_nonblocking(true).is_ok() => {
                    let peer = Peer {
                        conn,
                        inbox: Vec::new(),
                        queue: Queue::default(),
                        role: None,
                        came: now,
                        closing: false,
                        gone: false,
                    };
                    self.peers.insert(self.next, peer);
                    self.next += 1;
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    fn serve(&mut self, number: u64) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        let start = peer.inbox.len();
        peer.inbox.resize(start + READ, 0);
        let read = peer.conn.read(&mut peer.inbox[start..]);
        peer.inbox.truncate(start + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => peer.gone = true,
            Err(e) if !matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                peer.gone = true;
            }
            _ => {}
        }
        loop {
            let Some(peer) = self.peers.get_mut(&number).filter(|p| !p.closing) else { return };
            let Some(length) = peer.inbox.first_chunk::<4>().map(|b| u32::from_be_bytes(*b) as usize) else {
                return;
            };
            if length > MAX_FRAME {
                self.refuse(number, 0, ErrorCode::PayloadTooLarge);
                return;
            }
            if peer.inbox.len() < 4 + length {
                return;
            }
            let message = Message::decode(&peer.inbox[4..4 + length]);
            peer.inbox.drain(..4 + length);
            match message {
                Ok(message) => self.take(number, &message),
                // What follows cannot be trusted to be a frame.
                Err(_) => return self.refuse(number, 0, ErrorCode::Malformed),
            }
        }
    }

    fn take(&mut self, number: u64, message: &Message) {
        let Some(role) = self.peers.get(&number).map(|p| p.role) else { return };
        let Some(role) = role else { return self.hello(number, message) };
        let Some(id) = message.id() else { return self.answer(number, 0, Err(ErrorCode::Malformed)) };
        let mut effects = Vec::new();
        let now = self.clock.now().wall;
        let answer =
            message.request(role).and_then(|request| self.ledger.serve(number, request, now, &mut effects));
        for effect in effects {
            match effect {
                Effect::Send(peer, inject) => self.send(peer, inject.frame()),
                Effect::Write(sink, content) => return self.write_out(number, id, sink, content, answer),
            }
        }
        self.answer(number, id, answer);
    }

    fn hello(&mut self, number: u64, message: &Message) {
        let hello = message.hello();
        self.send(number, Response::hello_frame(hello.clone().map(drop)));
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.closing = hello.is_err();
            peer.role = hello.ok().map(|hello| hello.role);
        }
    }

    /// Writes a turn on a thread of its own, which answers when it is written.
    fn write_out(&mut self, number: u64, id: u64, sink: Sink, content: Arc<[u8]>, answer: Answered) {
        if self.writers.fetch_add(1, Ordering::AcqRel) >= WRITERS {
            self.writers.fetch_sub(1, Ordering::AcqRel);
            return self.answer(number, id, Err(ErrorCode::Busy));
        }
        let (write, done, bell, writers) =
            (Arc::clone(&self.write), Arc::clone(&self.done), self.bell.clone(), Arc::clone(&self.writers));
        let spawned = std::thread::Builder::new().name("tapdeck-sink".into()).spawn(move || {
            let outcome = match write(&sink, &content) {
                Ok(()) => answer.map_err(Refusal::from),
                Err(why) => Err(Refusal { code: ErrorCode::SinkFailed, message: Some(why) }),
            };
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, Response { id, outcome }));
            writers.fetch_sub(1, Ordering::AcqRel);
            bell.ring();
        });
        if spawned.is_err() {
            self.writers.fetch_sub(1, Ordering::AcqRel);
            self.answer(number, id, Err(ErrorCode::Busy));
        }
    }

    fn answer(&mut self, number: u64, id: u64, answer: Answered) {
        self.send(number, Response { id, outcome: answer.map_err(Refusal::from) }.frame());
    }

    /// Answers with an error, and ends the connection.
    fn refuse(&mut self, number: u64, id: u64, error: ErrorCode) {
        self.answer(number, id, Err(error));
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.closing = true;
        }
    }

    fn send(&mut self, number: u64, frame: Vec<u8>) {
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.queue.push(frame);
            peer.gone |= peer.queue.len() > HOPELESS;
        }
    }

    fn flush(&mut self, now: Time) {
        let ledger = &mut self.ledger;
        self.peers.retain(|number, peer| {
            if peer.queue.flush(&mut peer.conn).is_err() || (peer.closing && peer.queue.is_empty()) {
                peer.gone = true;
            }
            let gone = peer.gone || (peer.role.is_none() && now > peer.came + HELLO);
            if gone {
                ledger.peer_gone(*number);
                peer.conn.shutdown(Shutdown::Both);
            }
            !gone
        });
    }
}
