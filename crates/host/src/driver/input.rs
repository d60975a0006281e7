//! What goes to the program: the keys of the stick's holder, and the end of input behind them.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tapdeck_core::{Author, Event, Refused, Stamp, Time};
use tapdeck_term::keys::is_report;

use super::{Driver, Ended, LOCAL};
use crate::backend::{Backend, EndOfInput};
use crate::user_side::Typed;

/// How long until the end of input is offered again, at first and at most.
const END_RETRY: std::ops::RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_millis(200);

/// How far the end of input has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputEnd {
    /// Input may still come.
    Open,
    /// It has ended; offer that to the program at this time, then after this long again.
    Offer { at: Time, again: Duration },
    /// The program knows.
    Told,
}

impl<B: Backend> Driver<B> {
    /// The user's input: to the program first, then to the log.
    pub(super) fn pump_typed(&mut self, now: Stamp) -> io::Result<()> {
        let Some(user) = &mut self.user else { return Ok(()) };
        // Replies may have filled the gate since this turn began. The keys then wait where they
        // are, but a user who has left is noticed all the same.
        if !self.gate.has_room() && !user.has_typed(false) {
            return Ok(());
        }
        let typed = user.read()?;
        self.take_typed(typed, now)
    }

    pub(super) fn take_typed(&mut self, typed: Typed, now: Stamp) -> io::Result<()> {
        match typed {
            // The terminal answers the program while another party drives: that is no typing.
            Typed::Bytes(bytes) if self.gate.stick().holder() != Some(self.local) && is_report(&bytes) => {
                self.gate.reply(bytes);
                self.deliver(now)?;
            }
            Typed::Bytes(bytes) if self.own_keys.is_some() => self.take_keys(&bytes, now)?,
            Typed::Bytes(bytes) => self.take_bytes(bytes, now)?,
            Typed::Nothing => {}
            Typed::Resized(size) => self.user_resized(size, now)?,
            Typed::Signal(signal) => self.forward(signal, now),
            Typed::HungUp => self.hang_up(now),
            Typed::Gone => self.user_is_gone(Ended::OutputClosed),
            Typed::Left => {
                self.user = None;
                self.let_model_answer();
                if !self.backend.has_terminal() && self.input_end == InputEnd::Open {
                    // The client held the other end of the program's pipe. A terminal would stay,
                    // for others to type at.
                    self.end_typed(now);
                }
            }
            Typed::End => self.end_typed(now),
        }
        Ok(())
    }

    /// Offers what the user typed to the program.
    pub(super) fn take_bytes(&mut self, bytes: Bytes, now: Stamp) -> io::Result<()> {
        if self.gate.stick().holder() != Some(self.local) {
            // The user at the terminal may always take over, and does so by typing. The rules
            // refuse a person nothing; should they, the offer below is refused, too.
            let _ = self.gate.take(self.local, now);
            if std::mem::take(&mut self.sized_elsewhere) {
                // The session gets the size of that terminal.
                self.resize(self.own_size, now)?;
            }
        }
        match self.gate.offer(self.local, None, bytes, now) {
            // A program that was told of the end of input reads no more, as on any terminal.
            Ok(()) | Err(Refused::Ended) => {}
            Err(refused) => debug_assert!(false, "room and stick were checked: {refused}"),
        }
        self.deliver(now)?;
        self.log_changes(now);
        Ok(())
    }

    /// No more input will come, behind what has come so far.
    pub(super) fn end_typed(&mut self, now: Stamp) {
        self.last_traffic = now.mono;
        self.input_end = InputEnd::Offer { at: now.mono, again: *END_RETRY.start() };
    }

    /// Writes what waits at the gate, as far as the program takes it.
    pub(super) fn deliver(&mut self, now: Stamp) -> io::Result<()> {
        while let Some(bytes) = self.gate.poll_write() {
            let hidden = self.backend.hides_input();
            match self.backend.write(bytes) {
                Ok(0) => break,
                Ok(n) => {
                    self.last_traffic = now.mono;
                    if let Some(delivered) = self.gate.wrote(n) {
                        let hidden = hidden && self.may_hide(&delivered.by);
                        self.log
                            .append(Event::Input { by: delivered.by, bytes: delivered.bytes, hidden }, now);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The program's side is closed: nothing can be delivered any more.
                Err(_) => self.gate.close(),
            }
        }
        Ok(())
    }

    /// Whether input of this author is hidden while the terminal does not echo. A user who pipes
    /// has a terminal without echo from the start, so there it says nothing about the program.
    fn may_hide(&self, by: &Author) -> bool {
        matches!(by, Author::Party(party) if !self.is_piped || *party.name != *LOCAL)
    }

    /// Tells the program that no more input will come, as a terminal does: whenever it has read
    /// everything and asks for more.
    pub(super) fn offer_end(&mut self, now: Stamp, again: Duration) -> io::Result<()> {
        let next = (again * 2).min(*END_RETRY.end());
        if self.gate.waiting() == 0 {
            let quiet = now.mono.since(self.last_traffic);
            match self.backend.end_input(self.gate.line_open(), quiet) {
                Ok(EndOfInput::Told) => {
                    self.input_end = InputEnd::Told;
                    // What is typed from here on would go nowhere.
                    self.gate.end();
                    return Ok(());
                }
                Ok(EndOfInput::Send(byte, times)) => {
                    self.gate.end_of_input(Bytes::from(vec![byte; times]));
                    self.deliver(now)?;
                }
                Ok(EndOfInput::NotYet) => {}
                // No process holds the terminal, so none has to be told.
                Err(_) => {}
            }
        }
        self.input_end = InputEnd::Offer { at: now.mono + next, again: next };
        Ok(())
    }
}
