//! The HTTP API of the page's server, below [`BASE`].
//!
//! [`routes!`](self) is the one table of its operations. The server matches [`Operation`] and the
//! OpenAPI document is made from [`ROUTES`] and the types beside them, so that they cannot
//! disagree.

#[cfg(feature = "schema")]
mod document;
mod types;

#[cfg(feature = "schema")]
pub use document::document;
pub use types::{
    Ask, AskOutcome, Asked, EventsQuery, Lease, PressKeys, Problem, RecordingInfo, RecordingList,
    ScreenFormat, ScreenQuery, SessionList, Take, TurnList, TurnQuery, TurnsQuery, TypeText, WaitQuery,
    Waited,
};

use crate::bus;
#[cfg(feature = "schema")]
use crate::page;

/// The path that all operations are below.
pub const BASE: &str = "/api/v1";
/// The longest body of a request, in bytes: room for the longest text of `paste`, as JSON.
pub const MAX_BODY: usize = bus::MAX_PASTE + (1 << 20);

/// The method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// It changes nothing.
    Get,
    /// It may change something.
    Post,
}

/// An operation, as documentation and the server know it.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The operation.
    pub operation: Operation,
    /// Its name for programs.
    pub id: &'static str,
    /// Its method.
    pub method: Method,
    /// Its path below [`BASE`].
    pub path: &'static str,
    /// What a client needs, in the words of `core::Need`; `nothing` for what all may read.
    pub needs: &'static str,
    /// The status of a reply.
    pub status: u16,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The types of its query, its body and its reply.
    #[cfg(feature = "schema")]
    pub(crate) shapes: document::Shapes,
}

macro_rules! routes {
    ($($operation:ident $id:literal $method:ident $path:literal, needs $needs:literal,
        query $query:tt, body $body:tt, $status:literal $reply:tt $summary:literal;)+) => {
        /// What can be asked of the API. The server answers every variant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Operation {
            $(#[doc = $summary] $operation,)+
        }

        /// All operations.
        pub const ROUTES: &[Route] = &[$(Route {
            operation: Operation::$operation,
            id: $id,
            method: Method::$method,
            path: $path,
            needs: $needs,
            status: $status,
            summary: $summary,
            #[cfg(feature = "schema")]
            shapes: document::Shapes {
                query: routes!(@type $query),
                body: routes!(@type $body),
                reply: routes!(@reply $reply),
            },
        },)+];
    };
    (@type none) => { None };
    (@type ($type:ty)) => { Some(document::shape_of::<$type>) };
    (@reply (json $type:ty)) => { document::Reply::Json(document::shape_of::<$type>) };
    (@reply (text or $type:ty)) => { document::Reply::TextOr(document::shape_of::<$type>) };
    (@reply (events $type:ty)) => { document::Reply::Events(document::shape_of::<$type>) };
    (@reply text) => { document::Reply::Text };
    (@reply bytes) => { document::Reply::Bytes };
    (@reply document) => { document::Reply::Document };
}

routes! {
    ListSessions "listSessions" Get "/sessions", needs "watch",
        query none, body none, 200 (json SessionList)
        "Lists the live sessions.";
    OpenSession "openSession" Post "/sessions", needs "open",
        query none, body (page::OpenSession), 201 (json page::Started)
        "Starts a program as a session that outlives the request.";
    ShowSession "showSession" Get "/sessions/{id}", needs "watch",
        query none, body none, 200 (json bus::Info)
        "Shows what a session is and does.";
    GetScreen "getScreen" Get "/sessions/{id}/screen", needs "watch",
        query (ScreenQuery), body none, 200 (text or bus::Screen)
        "Shows a session's screen.";
    Explain "explain" Get "/sessions/{id}/explain", needs "watch",
        query none, body none, 200 (json bus::Explained)
        "Shows what a session's program is doing, the evidence for it and the question that it asks.";
    WaitFor "waitFor" Get "/sessions/{id}/wait", needs "watch",
        query (WaitQuery), body none, 200 (json Waited)
        "Waits until a condition holds; 504 if it does not in time.";
    ListTurns "listTurns" Get "/sessions/{id}/turns", needs "watch",
        query (TurnsQuery), body none, 200 (json TurnList)
        "Lists the turns that a session keeps, the oldest first.";
    ShowTurn "showTurn" Get "/sessions/{id}/turns/{number}", needs "watch",
        query (TurnQuery), body none, 200 (json bus::Turn)
        "Shows a turn by its number, or the newest one as `last`.";
    SessionEvents "sessionEvents" Get "/sessions/{id}/events", needs "watch",
        query (EventsQuery), body none, 200 (events bus::Event)
        "Sends what happens in a session, until its program ends.";
    TypeText "typeText" Post "/sessions/{id}/type", needs "drive",
        query none, body (TypeText), 200 (json bus::Typed)
        "Types text; line ends are typed as Enter.";
    PressKeys "pressKeys" Post "/sessions/{id}/keys", needs "drive",
        query none, body (PressKeys), 200 (json bus::Typed)
        "Presses keys by their names, as tmux spells them.";
    Paste "paste" Post "/sessions/{id}/paste", needs "drive",
        query none, body (bus::Paste), 200 (json bus::Pasted)
        "Sends a prompt and confirms that it was delivered.";
    Ask "ask" Post "/sessions/{id}/ask", needs "drive",
        query none, body (Ask), 200 (json Asked)
        "Sends a prompt and waits for the answer.";
    Answer "answer" Post "/sessions/{id}/answer", needs "drive",
        query none, body (bus::Answer), 200 (json bus::Answered)
        "Answers the question that a program asks, and confirms that it was taken.";
    TakeStick "takeStick" Post "/sessions/{id}/take", needs "drive",
        query none, body (Take), 200 (json Lease)
        "Takes the stick for a while; requests with the same credential hold it.";
    ReleaseStick "releaseStick" Post "/sessions/{id}/release", needs "drive",
        query none, body none, 200 (json bus::Released)
        "Gives the stick up.";
    ResizeSession "resizeSession" Post "/sessions/{id}/resize", needs "the stick, or administer",
        query none, body (bus::Resize), 200 (json bus::Resized)
        "Sets the size of a session's terminal.";
    KillSession "killSession" Post "/sessions/{id}/kill", needs "the stick, or administer",
        query none, body (bus::Kill), 200 (json bus::Nothing)
        "Ends a session's program, or sends it a signal.";
    ListRecordings "listRecordings" Get "/recordings", needs "watch",
        query none, body none, 200 (json RecordingList)
        "Lists the recordings, the newest first.";
    ShowRecording "showRecording" Get "/recordings/{name}", needs "watch",
        query none, body none, 200 (json RecordingInfo)
        "Shows what a recording holds.";
    GetRecordingFile "getRecordingFile" Get "/recordings/{name}/file", needs "watch",
        query none, body none, 200 bytes
        "Downloads a recording.";
    GetRecordingText "getRecordingText" Get "/recordings/{name}/text", needs "watch",
        query none, body none, 200 text
        "Shows a recording's lines as plain text.";
    Events "events" Get "/events", needs "watch",
        query none, body none, 200 (events page::List)
        "Sends the list of sessions and recordings whenever it has changed.";
    Openapi "openapi" Get "/openapi.json", needs "nothing",
        query none, body none, 200 document
        "Describes this API by OpenAPI 3.1.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names_and_places_of_their_own() {
        for (n, route) in ROUTES.iter().enumerate() {
            for other in &ROUTES[n + 1..] {
                assert_ne!(route.id, other.id);
                assert!(route.path != other.path || route.method != other.method, "{}", route.path);
            }
        }
    }
}
