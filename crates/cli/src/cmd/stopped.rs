//! The signals that end a server.

/// Waits for a signal to end.
pub(super) async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    match signals {
        (Ok(mut int), Ok(mut term), Ok(mut hup)) => {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
                _ = hup.recv() => {}
            }
        }
        // Signals that cannot be caught end the process by themselves.
        _ => std::future::pending().await,
    }
}
