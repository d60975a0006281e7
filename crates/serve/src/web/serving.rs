//! The HTTP server of the page: a limited number of connections, each with a time limit for its
//! request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::Site;

/// The most connections at once.
const CONNECTIONS: usize = 512;
/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);

/// Serves the page on this thread until `stop` is ready.
///
/// # Errors
/// When there is no listener or no runtime. Errors of a connection end that connection only.
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
                    // A client without a seat is refused at once, and may try again.
                    let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else { continue };
                    // Without the option, messages are only slower.
                    let _ = stream.set_nodelay(true);
                    let site = site.clone();
                    tokio::spawn(async move {
                        serve_stream(&site, stream).await;
                        drop(seat);
                    });
                }
                // Most likely out of descriptors: clients may leave meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        Ok(())
    })
}

/// Serves one connection over any stream, to its end.
pub async fn serve_stream<S>(site: &Site, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(site.router());
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(64 * 1024);
    // A broken connection affects no other.
    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}
