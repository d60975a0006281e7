//! Server-sent events. A stream ends with its session or its credential. A slow client gets the
//! newest state: a session keeps little for it and tells what was lost, and lists are made anew.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tapdeck_proto::api::EventsQuery;
use tapdeck_proto::bus::{self, Ask as _, Frames, Line, Sub};
use tokio::sync::OwnedSemaphorePermit;

use super::input::Params;
use super::sessions::{NAME, find};
use super::{At, Refusal};
use crate::web::Site;
use crate::web::guard::Pass;
use crate::web::list::LOOK;
use crate::web::relay::{Lines, join};

/// How often a stream without events says that it is there.
const BEAT: Duration = Duration::from_secs(15);
/// Screens a second, at most.
const SCREENS: u64 = 10;

/// What a stream is made from.
enum Feed {
    /// A session's bus.
    Session(Box<Lines>),
    /// The list of sessions and recordings, and the one that was sent last.
    List(Option<Arc<str>>),
}

/// A stream for one client.
struct Stream {
    site: Site,
    pass: Pass,
    feed: Feed,
    queue: VecDeque<Event>,
    over: bool,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn of_session(
    site: At,
    pass: Pass,
    Path(id): Path<String>,
    Params(query): Params<EventsQuery>,
) -> Result<Response, Refusal> {
    let listing = site.call(&pass, move || find(&id)).await?;
    let (mut lines, _) = join(listing, pass.authority, NAME).await?;
    let frames = if query.screen { Frames::Full } else { Frames::None };
    let sub = Sub { frames, out: false, max_fps: Some(SCREENS), looks: false, ..Sub::default() };
    let line = format!("SUB {}", sub.to_payload());
    lines.put(&line).await.ok_or_else(|| Refusal::late("the session does not read"))?;
    start(&site, pass, Feed::Session(Box::new(lines)))
}

pub(super) async fn of_list(site: At, pass: Pass) -> Result<Response, Refusal> {
    start(&site, pass, Feed::List(None))
}

fn start(site: &Site, pass: Pass, feed: Feed) -> Result<Response, Refusal> {
    let place = Arc::clone(&site.0.api.streams).try_acquire_owned();
    let place = place.map_err(|_| Refusal::too_many("event streams"))?;
    let stream =
        Stream { site: site.clone(), pass, feed, queue: VecDeque::new(), over: false, _place: place };
    let events = stream::unfold(stream, async |mut stream| {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(BEAT)).into_response())
}

impl Stream {
    async fn next(&mut self) -> Option<Event> {
        while self.queue.is_empty() {
            if self.over {
                return None;
            }
            let Self { site, pass, feed, .. } = self;
            let fed = match feed {
                Feed::Session(lines) => site.while_valid(pass, of_line(lines)).await,
                Feed::List(shown) => site.while_valid(pass, of_change(site, shown)).await,
            };
            match fed {
                Some(Fed::Event(event)) => self.queue.push_back(event),
                Some(Fed::Last(event)) => {
                    self.queue.push_back(event);
                    self.over = true;
                }
                Some(Fed::Nothing) => {}
                Some(Fed::End) => self.over = true,
                None => {
                    self.queue
                        .extend(Event::default().event("problem").json_data(Refusal::revoked().problem()));
                    self.over = true;
                }
            }
        }
        self.queue.pop_front()
    }
}

/// What came next.
enum Fed {
    Event(Event),
    /// The last event.
    Last(Event),
    Nothing,
    End,
}

/// Waits for the next event of a session.
async fn of_line(lines: &mut Lines) -> Fed {
    let Ok(Some(line)) = lines.next().await else { return Fed::End };
    let Line { verb, payload, .. } = Line::split(&line);
    match verb {
        "FRAME" => Fed::Event(Event::default().event("screen").data(payload)),
        "EVENT" => {
            let Ok(event) = serde_json::from_str::<bus::Event>(payload) else { return Fed::Nothing };
            let Some(name) = name_of(payload) else { return Fed::Nothing };
            let told = Event::default().event(name).data(payload);
            if matches!(event, bus::Event::Closed { .. }) { Fed::Last(told) } else { Fed::Event(told) }
        }
        _ => Fed::Nothing,
    }
}

/// Returns the name of a session's event, in small letters.
fn name_of(payload: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(payload).ok()?;
    Some(value.get("name")?.as_str()?.to_lowercase())
}

/// Waits for a change of the list.
async fn of_change(site: &Site, shown: &mut Option<Arc<str>>) -> Fed {
    loop {
        let list = site.list().await;
        if shown.as_ref() != Some(&list) {
            let told = list.split_once(' ').map_or("", |(_, payload)| payload).to_owned();
            *shown = Some(list);
            return Fed::Event(Event::default().event("list").data(told));
        }
        tokio::time::sleep(LOOK).await;
    }
}
