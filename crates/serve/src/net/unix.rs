//! Sessions over a Unix socket: one for each connection, for the user alone.

use std::io;
use std::sync::Arc;

use tokio::net::UnixListener;

use super::line::serve_whole;
use super::{Peer, Server};
use crate::admission::accept_all;
use crate::door::{Door, is_ours};

/// Serves the clients of the socket, which is removed when the task ends.
pub(super) fn listen(server: Arc<Server>, door: Door) -> io::Result<()> {
    let listener = UnixListener::from_std(door.unix_listener()?)?;
    let admission = Arc::clone(&server.admission);
    tokio::spawn(async move {
        let _door = door;
        accept_all(admission, "unix", listener, move |stream, seat| {
            let server = Arc::clone(&server);
            async move {
                // A process of another user only sees the connection close.
                if is_ours(&stream) {
                    serve_whole(server, stream, Peer::Owner, &seat).await;
                } else {
                    tracing::warn!(error = "another_user", "refused");
                }
            }
        })
        .await
    });
    Ok(())
}
