//! Resources: screens, turns and recordings by address.

use std::fmt::Write as _;

use rmcp::model::{ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tapdeck_host::registry::Listing;

use super::call::Refusal;
use super::server::Handler;
use super::tools::LIMIT;

/// The longest address.
const ADDRESS: usize = 8 * 1024;
/// The most turns in the resource of a conversation, and lines in that of a recording.
const TURNS: u64 = 200;
const LINES: u64 = 5000;

/// What an address leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Screen(String),
    Turns(String),
    Recording(String),
}

impl Place {
    pub(super) fn parse(uri: &str) -> Option<Self> {
        let path = uri.strip_prefix("tapdeck://").filter(|path| path.len() <= ADDRESS)?;
        if let Some(name) = path.strip_prefix("recordings/") {
            return decoded(name).map(Self::Recording);
        }
        let (session, what) = path.strip_prefix("sessions/")?.split_once('/')?;
        match what {
            "screen" => decoded(session).map(Self::Screen),
            "turns" => decoded(session).map(Self::Turns),
            _ => None,
        }
    }
}

/// Returns the address of a session's screen.
pub(super) fn uri_of_screen(listing: &Listing) -> String {
    format!("tapdeck://sessions/{}/screen", encoded(name_of(listing)))
}

fn name_of(listing: &Listing) -> &str {
    listing.name.as_deref().unwrap_or(&listing.id)
}

/// Writes a name as a part of an address; slashes stay.
fn encoded(name: &str) -> String {
    let mut out = String::new();
    for b in name.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(b))
            }
            // Memory takes everything, so writing cannot fail.
            _ => drop(write!(out, "%{b:02X}")),
        }
    }
    out
}

fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let b = match b {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b => b,
        };
        out.push(b);
    }
    String::from_utf8(out).ok().filter(|name| !name.is_empty())
}

/// Returns the forms of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("tapdeck://sessions/{session}/screen", "screen")
            .with_title("Screen of a session")
            .with_description("The screen of a running session, as text")
            .with_mime_type("text/plain"),
        ResourceTemplate::new("tapdeck://sessions/{session}/turns", "turns")
            .with_title("Turns of a session")
            .with_description("The prompts and answers of a running session, as JSON")
            .with_mime_type("application/json"),
        ResourceTemplate::new("tapdeck://recordings/{+recording}", "recording")
            .with_title("Recording")
            .with_description("The first lines of a recording, as text")
            .with_mime_type("text/plain"),
    ]
}

impl Handler {
    /// Lists the screens and turns of all sessions, and the newest recordings.
    pub(super) async fn all_resources(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<Resource>, Refusal> {
        self.work(context, LIMIT, |call| {
            let mut all = Vec::new();
            for listing in call.sessions()? {
                let name = name_of(&listing);
                let screen = Resource::new(uri_of_screen(&listing), format!("{name}: screen"));
                all.push(screen.with_mime_type("text/plain"));
                let turns = format!("tapdeck://sessions/{}/turns", encoded(name));
                all.push(Resource::new(turns, format!("{name}: turns")).with_mime_type("application/json"));
            }
            let folder = call.shared.options.recordings.as_deref();
            for recording in folder.map(crate::recordings::list).unwrap_or_default() {
                let uri = format!("tapdeck://recordings/{}", encoded(&recording.name));
                all.push(Resource::new(uri, recording.name).with_mime_type("text/plain"));
            }
            Ok(all)
        })
        .await
    }

    /// Reads what an address leads to.
    pub(super) async fn resource(
        &self,
        context: &RequestContext<RoleServer>,
        uri: String,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown = |why: String| ErrorData::resource_not_found(why, None);
        let Some(place) = Place::parse(&uri) else {
            return Err(unknown(format!("no resource has the address {uri:.200}")));
        };
        let read = self.work(context, LIMIT, move |call| match place {
            Place::Screen(session) => {
                let screen = call.screen(Some(&session), 0, None)?;
                Ok((format!("{}\n\n{}", screen.about, screen.rows), "text/plain"))
            }
            Place::Turns(session) => Ok((call.turns(Some(&session), TURNS)?.to_string(), "application/json")),
            Place::Recording(name) => Ok((call.read_recording(&name, 1, LINES)?.text, "text/plain")),
        });
        let (text, kind) = read.await.map_err(|refusal| unknown(refusal.why))?;
        let contents = ResourceContents::text(text, uri).with_mime_type(kind);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back() {
        for name in ["build", "runs/a b.ahr", "é%.cast", "a?b#c"] {
            let uri = format!("tapdeck://recordings/{}", encoded(name));
            assert_eq!(Place::parse(&uri), Some(Place::Recording(name.to_owned())), "{uri}");
        }
        assert_eq!(Place::parse("tapdeck://sessions/a%20b/turns"), Some(Place::Turns("a b".to_owned())));
        let bad = [
            "",
            "file:///etc/passwd",
            "tapdeck://",
            "tapdeck://sessions/x",
            "tapdeck://sessions//screen",
            "tapdeck://recordings/%4",
            "tapdeck://recordings/%ff",
        ];
        for uri in bad {
            assert_eq!(Place::parse(uri), None, "{uri}");
        }
    }
}
