//! The bus: splits what a client has sent into requests, has them answered, and sends the replies.

use tapdeck_core::Time;
use tapdeck_proto::bus::{Denied, Line, NO_ID, Nothing, Reply, Request, RequestError};
use tapdeck_term::Theme;

use super::client::Id;
use super::hub::Hub;

/// How a request is answered.
pub(super) enum Answer {
    /// By this reply.
    Reply(Box<Reply>),
    /// By this reply, encoded already.
    Encoded {
        /// Its verb.
        verb: &'static str,
        /// Its payload.
        payload: String,
    },
    /// By nothing; a request with an id gets an `OK`.
    Nothing,
    /// Later, or it has been answered already.
    Later,
}

impl<T: Into<Reply>> From<T> for Answer {
    fn from(reply: T) -> Self {
        Answer::Reply(Box::new(reply.into()))
    }
}

/// An answer, or why there is none.
pub(super) type Answered = Result<Answer, Denied>;

impl Hub {
    /// Serves what a client has sent, frame by frame.
    pub(super) fn serve_bus(&mut self, number: u64, now: Time) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if memchr::memchr(b'\n', &client.conn.inbox).is_none()
            && client.conn.inbox.len() <= client.max_frame()
        {
            return;
        }
        let inbox = std::mem::take(&mut client.conn.inbox);
        let mut rest = &inbox[..];
        while let Some(client) = self.clients.get_mut(&number).filter(|c| !c.conn.closing && !c.conn.gone) {
            let (line, behind) = match memchr::memchr(b'\n', rest) {
                Some(end) => (&rest[..end], Some(&rest[end + 1..])),
                None => (rest, None),
            };
            if line.len() > client.max_frame() {
                let error = format!("the frame is too long: at most {} bytes", client.max_frame());
                client.conn.reply(None, &Denied::because(error).into());
                client.conn.closing = true;
                break;
            }
            let Some(behind) = behind else { break };
            rest = behind;
            match std::str::from_utf8(line) {
                Ok(line) => self.serve_line(number, Line::split(line), now),
                // The next line may be a frame again.
                Err(_) => client.conn.reply(None, &Denied::because("a frame is a line of UTF-8").into()),
            }
        }
        if let Some(client) = self.clients.get_mut(&number) {
            client.conn.inbox = rest.to_vec();
        }
    }

    fn serve_line(&mut self, number: u64, line: Line<'_>, now: Time) {
        let id = line.id.filter(|_| line.has_valid_id());
        let answered = match self.clients.get(&number) {
            None => return,
            Some(_) if !line.has_valid_id() => Err(Denied::because(NO_ID)),
            Some(client) => {
                let is_hello = line.verb.eq_ignore_ascii_case("HELLO");
                let known = client.known;
                let answered = if known || is_hello {
                    self.answer(number, line, now)
                } else {
                    Err(Denied::because("a token is needed"))
                };
                // A client that is not let in has nothing more to say.
                if (is_hello || !known)
                    && answered.is_err()
                    && let Some(client) = self.clients.get_mut(&number)
                {
                    client.conn.closing = true;
                }
                answered
            }
        };
        let Some(client) = self.clients.get_mut(&number) else { return };
        match answered {
            Ok(Answer::Reply(reply)) => client.conn.reply(id, &reply),
            Ok(Answer::Encoded { verb, payload }) => client.conn.line(id, verb, &payload),
            Ok(Answer::Nothing) if id.is_some() => client.conn.reply(id, &Nothing {}.into()),
            Ok(Answer::Nothing | Answer::Later) => {}
            Err(denied) => client.conn.reply(id, &denied.into()),
        }
    }

    /// Answers a request. One whose reply comes later keeps the id.
    fn answer(&mut self, number: u64, line: Line<'_>, now: Time) -> Answered {
        let request = match Request::parse(line.verb, line.payload) {
            Ok(request) => request,
            // Unknown verbs are ignored, so that newer clients can talk to older sessions. But a
            // client that gave an id waits for a reply.
            Err(RequestError::UnknownVerb(_)) if line.id.is_none() => return Ok(Answer::Later),
            Err(e) => return Err(Denied::because(e)),
        };
        if request.reads().output() {
            self.pump(now);
        }
        if request.reads().turns() {
            self.follow_turns();
        }
        let roster = if matches!(request, Request::Info(_)) { self.roster() } else { Vec::new() };
        let Some(client) = self.clients.get_mut(&number) else { return Ok(Answer::Later) };
        let (session, id) = (&mut self.session, line.id.map(Id::from));
        match request {
            Request::Hello(asked) => Ok(session.hello(client, &asked)?.into()),
            Request::Snap(asked) => Ok(session.snap(client, asked)),
            Request::Info(asked) => Ok(session.info(asked, roster, client.max_frame(), now)),
            Request::Sub(asked) => Ok(session.subscribe(client, asked, id.as_deref())),
            Request::Ack(_) => {
                if let Some(sub) = client.bus().and_then(|bus| bus.sub.as_mut()) {
                    sub.undrawn = sub.undrawn.saturating_sub(1);
                }
                Ok(Answer::Nothing)
            }
            Request::Rows(asked) => {
                let theme = client.bus().map_or(Theme::XTERM, |bus| bus.theme);
                Ok(crate::paint::rows(session.access.look().term(), asked, theme).into())
            }
            Request::Find(asked) => Ok(crate::paint::find(session.access.look().term(), asked).into()),
            Request::Line(line) => session.line(client, &line.0),
            Request::Key(key) => session.key(client, &key),
            Request::Cmd(line) => session.cmd(client, &line.0, id, now),
            Request::Paste(asked) => session.paste(client, &asked, id, now),
            Request::Answer(asked) => session.answer(client, &asked, id, now),
            Request::Turns(asked) => Ok(session.list_turns(asked).into()),
            Request::Turn(asked) => Ok(session.show_turn(asked)?.into()),
            Request::Explain(_) => Ok(session.explain()?.into()),
            Request::Broker(_) => Ok(session.broker(client)?.into()),
            Request::Take(_) => Ok(session.take(client)?.into()),
            Request::Release(_) => Ok(session.release(client)?.into()),
            Request::Resize(asked) => Ok(session.resize(client, asked)?.into()),
            Request::Kill(asked) => Ok(session.kill(client, &asked)?.into()),
            Request::Rec(asked) => Ok(session.rec(client, &asked)?.into()),
            Request::Mark(asked) => Ok(session.mark(client, &asked.label)?.into()),
            Request::Instruct(asked) => Ok(session.instruct(client, asked)?.into()),
            Request::Pause(asked) => Ok(session.pause(client, &asked)?.into()),
            Request::Rename(asked) => Ok(session.rename(client, asked)?.into()),
        }
    }
}
