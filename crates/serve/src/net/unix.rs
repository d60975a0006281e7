//! Sessions over a Unix socket: one a connection, for the user alone.

use std::io;
use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};

use super::{Peer, Server, serve_stream};
use crate::door::{Door, is_ours};

/// Serves those who come through the door, which is removed when the task ends.
pub(super) fn listen(server: Arc<Server>, door: Door) -> io::Result<()> {
    let listener = UnixListener::from_std(door.unix_listener()?)?;
    tokio::spawn(async move {
        let _door = door;
        loop {
            match listener.accept().await {
                // Somebody else's process sees a closed door.
                Ok((stream, _)) if is_ours(&stream) => accept(&server, stream).await,
                Ok(_) => {}
                // Out of descriptors, most likely: those who wait are served when there are some again.
                Err(_) => tokio::time::sleep(super::session::BREATH).await,
            }
        }
    });
    Ok(())
}

async fn accept(server: &Arc<Server>, stream: UnixStream) {
    // With too many connections, the next one waits at the door.
    let Ok(permit) = Arc::clone(&server.connections).acquire_owned().await else { return };
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let (reader, writer) = stream.into_split();
        serve_stream(server, reader, writer, Peer::Owner).await;
        drop(permit);
    });
}
