//! The HTTP server under the page: connections in a bounded number, each with a time limit until it has said what it
//! wants.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::Site;

/// Connections at once.
const CONNECTIONS: usize = 512;
/// How long a request's head may take to come.
const HEAD: Duration = Duration::from_secs(10);

/// Serves the page on this thread until `stop` is ready.
///
/// # Errors
/// When there can be no listener or no runtime; what happens to a connection is that connection's own affair.
pub fn serve(site: &Site, listener: std::net::TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let seats = Arc::new(Semaphore::new(CONNECTIONS));
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    // Who finds no seat is sent away at once, and may come again.
                    let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else { continue };
                    let _ = stream.set_nodelay(true);
                    let site = site.clone();
                    tokio::spawn(async move {
                        serve_stream(&site, stream).await;
                        drop(seat);
                    });
                }
                // Out of descriptors, perhaps: those who are here may leave meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        Ok(())
    })
}

/// Serves one connection to its end, whatever it is carried by.
pub async fn serve_stream<S>(site: &Site, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(site.router());
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(64 * 1024);
    // A connection that broke off concerns nobody else.
    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}
