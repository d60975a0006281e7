//! A stream that is attached to a session which runs already: it is passed on to the session's own door, which knows who
//! may do what.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{Pass, Refusal, Server};
use crate::tokens::Scope;
use crate::wire::{self, Joining, Wanted};

/// Knocks at the session's door on the client's behalf.
pub(super) async fn join(server: &Arc<Server>, wanted: &Wanted, pass: &Pass) -> Result<UnixStream, Refusal> {
    let mut request = Value::Object(wanted.rest.clone());
    let joining = Joining::from_json(&request);
    let joining = joining.map_err(|e| Refusal::new("malformed_negotiation", e.to_string()))?;
    let session = joining.session.map(str::to_owned);
    let desk = Arc::clone(server);
    let found = tokio::task::spawn_blocking(move || desk.desk.find(session.as_deref())).await;
    let listing = found.map_err(|_| Refusal::new("internal", "the session could not be looked for"))??;
    let gone = |e: std::io::Error| Refusal::new("no_such_session", format!("{}: {e}", listing.id));
    let mut stream = UnixStream::connect(&listing.socket).await.map_err(gone)?;
    // The session's own rule says what somebody without its token may do, and that who only watches does no more.
    if pass.allows(Scope::Attach) {
        request["token"] = json!(listing.human_token);
    } else {
        request["token"] = Value::Null;
        request["read_only"] = json!(true);
    }
    stream.write_all(&wire::framed(&request)).await.map_err(gone)?;
    Ok(stream)
}

/// Passes everything on, both ways, as fast as the slower side takes it.
pub(super) async fn carry<R, W>(session: UnixStream, mut reader: R, mut writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut from, mut to) = session.into_split();
    // Whichever side ends, the other is told by the end of its stream.
    tokio::select! {
        _ = tokio::io::copy(&mut from, &mut writer) => { let _ = writer.shutdown().await; }
        _ = tokio::io::copy(&mut reader, &mut to) => {}
    }
}
