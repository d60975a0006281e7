//! A stream that is attached to a session which runs already: it is passed on to the session's own door, which knows who
//! may do what.

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{Refusal, Server};
use crate::wire::{self, Wanted};

/// Knocks at the session's door on the client's behalf.
pub(super) async fn join(server: &Server, wanted: &Wanted) -> Result<UnixStream, Refusal> {
    let session = wanted.rest.get("session").and_then(Value::as_str);
    let listing = server.desk.find(session)?;
    let gone = |e: std::io::Error| Refusal::new("no_such_session", format!("{}: {e}", listing.id));
    let mut stream = UnixStream::connect(&listing.socket).await.map_err(gone)?;
    let mut request = Value::Object(wanted.rest.clone());
    request["token"] = json!(listing.human_token);
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
