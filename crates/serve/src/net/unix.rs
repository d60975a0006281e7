//! Sessions over a Unix socket: one for each connection, for the user alone.

use std::io;
use std::sync::Arc;

use tokio::net::UnixListener;

use super::line::serve_whole;
use super::pending::{PendingClients, logged};
use super::{Peer, Server};
use crate::door::{Door, is_ours};

/// Serves the clients of the socket, which is removed when the task ends.
pub(super) fn listen(server: Arc<Server>, door: Door) -> io::Result<()> {
    let listener = UnixListener::from_std(door.unix_listener()?)?;
    let pending = PendingClients::new(&server);
    tokio::spawn(async move {
        let _door = door;
        loop {
            match listener.accept().await {
                // A process of another user only sees the connection close.
                Ok((stream, _)) if is_ours(&stream) => {
                    let visit = Arc::clone(&pending)
                        .visit(|server, client| serve_whole(server, stream, Peer::Owner, client));
                    tokio::spawn(logged("unix", None, visit));
                }
                Ok(_) => tracing::warn!(door = "unix", error = "another_user", "refused"),
                // Most likely out of descriptors: clients that wait are served when there are some
                // again.
                Err(_) => tokio::time::sleep(super::session::BREATH).await,
            }
        }
    });
    Ok(())
}
