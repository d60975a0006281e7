//! Attaches a stream to a session that runs already, by passing it on to the session's own door.

use std::io;
use std::sync::Arc;

use tapdeck_core::Right;
use tapdeck_proto::attach::Join;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::session::{LAST_WORDS, REVOKED, complaint};
use super::{Pass, Refusal, RefusalCode, Server};
use crate::wire;

/// Bytes that are passed on at a time.
const PIECE: usize = 64 * 1024;
/// Bytes in front of a chunk's payload.
const HEAD: usize = 5;

/// Connects to the session's door on behalf of the client.
pub(super) async fn join(
    server: &Arc<Server>,
    mut request: Join,
    pass: &Pass,
) -> Result<UnixStream, Refusal> {
    let session = request.session.clone();
    let server = Arc::clone(server);
    let found = tokio::task::spawn_blocking(move || server.runner.find(session.as_deref())).await;
    let listing =
        found.map_err(|_| Refusal::new(RefusalCode::Internal, "the session could not be looked for"))??;
    let gone = |e: std::io::Error| Refusal::new(RefusalCode::NoSuchSession, format!("{}: {e}", listing.id));
    let mut stream = UnixStream::connect(&listing.socket).await.map_err(gone)?;
    // The session's door makes the authority there from this: its human token, or read-only.
    let drives = pass.authority.grants(Right::Drive);
    request.token = drives.then(|| listing.human_token.clone());
    request.read_only |= !drives;
    // Its own token is another one than the session's owner has.
    request.share = false;
    stream.write_all(&wire::framed(&request)).await.map_err(gone)?;
    Ok(stream)
}

/// Passes everything on, both ways, as fast as the slower side takes it, until one side ends. A
/// client whose credential expires is told so; its input is dropped from then on.
pub(super) async fn carry<R, W>(
    session: UnixStream,
    mut reader: R,
    mut writer: W,
    revoked: impl Future<Output = ()>,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut from, mut to) = session.into_split();
    let (send_away, sent_away) = watch::channel(false);
    let mut no_more = sent_away.clone();
    let input = async {
        tokio::select! {
            _ = tokio::io::copy(&mut reader, &mut to) => {}
            _ = no_more.changed() => std::future::pending().await,
        }
    };
    let limit = async {
        revoked.await;
        send_away.send_replace(true);
        tokio::time::sleep(LAST_WORDS).await;
    };
    // Whichever side ends, the other is told by the end of its stream.
    tokio::select! {
        _ = pass_output(&mut from, &mut writer, sent_away) => {
            // A client that is gone needs no end of stream.
            let _ = writer.shutdown().await;
        }
        () = input => {}
        () = limit => {}
    }
}

/// Passes on what the session sends. A client that is sent away is told why between two chunks:
/// inside a chunk the message would be taken for a part of it.
async fn pass_output<R, W>(
    from: &mut R,
    writer: &mut W,
    mut sent_away: watch::Receiver<bool>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buf = vec![0; PIECE];
    let mut place = Place::default();
    let mut leaves = false;
    loop {
        if leaves && place.is_between() {
            writer.write_all(&wire::control(&complaint(None, REVOKED))).await?;
            return writer.flush().await;
        }
        let n = tokio::select! {
            biased;
            Ok(()) = sent_away.changed(), if !leaves => {
                leaves = true;
                continue;
            }
            n = from.read(&mut buf) => n?,
        };
        let bytes = &buf[..n];
        if bytes.is_empty() {
            return Ok(());
        }
        let n = if leaves { place.pass_to_end(bytes) } else { place.pass(bytes) };
        writer.write_all(&bytes[..n]).await?;
        writer.flush().await?;
    }
}

/// The position of a stream within its chunks.
#[derive(Debug, Default)]
struct Place {
    head: Vec<u8>,
    /// Bytes of the payload that are missing.
    left: usize,
}

impl Place {
    fn is_between(&self) -> bool {
        self.head.is_empty() && self.left == 0
    }

    /// Passes all of these bytes. Returns how many.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            done += self.pass_to_end(&bytes[done..]);
        }
        done
    }

    /// Passes bytes up to the end of the current chunk. Returns how many.
    fn pass_to_end(&mut self, bytes: &[u8]) -> usize {
        let mut done = 0;
        if self.left == 0 {
            done = bytes.len().min(HEAD - self.head.len());
            self.head.extend_from_slice(&bytes[..done]);
            if let [_, len @ ..] = &*self.head
                && let Ok(len) = <[u8; 4]>::try_from(len)
            {
                self.left = u32::from_be_bytes(len) as usize;
                self.head.clear();
            }
        }
        let payload = self.left.min(bytes.len() - done);
        self.left -= payload;
        done + payload
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the stream is cut, it is between chunks exactly where a chunk ends.
        #[test]
        fn the_end_of_a_chunk_is_found(lens in prop::collection::vec(0usize..20, 1..8), cut in 1usize..9, stop in 0usize..100) {
            let mut stream = Vec::new();
            let mut ends = vec![0];
            for len in lens {
                stream.extend_from_slice(&wire::chunk_head(wire::ChunkKind::Stdout, len));
                stream.extend(std::iter::repeat_n(7, len));
                ends.push(stream.len());
            }
            let stop = stop.min(stream.len());
            let mut place = Place::default();
            let mut at = 0;
            for piece in stream[..stop].chunks(cut) {
                at += place.pass(piece);
                prop_assert_eq!(place.is_between(), ends.contains(&at));
            }
            let behind = ends.iter().find(|end| **end >= at).copied();
            while !place.is_between() {
                at += place.pass_to_end(&stream[at..(at + cut).min(stream.len())]);
            }
            prop_assert_eq!(Some(at), behind);
        }
    }
}
