//! The HTTP server of the page.

use std::io;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use super::Site;
use crate::admission::{Admission, Limits, PAGE, Seat, accept_all};

/// How long a request's head may take, and its body.
pub(super) const REQUEST: Duration = Duration::from_secs(10);

/// Serves the page on this thread until `stop` is ready.
///
/// # Errors
/// When there is no listener or no runtime. Errors of a connection end that connection only.
pub fn serve(site: &Site, listener: std::net::TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        let site = site.clone();
        let admission = Admission::new(Limits::small());
        tokio::select! {
            () = stop => Ok(()),
            never = accept_all(admission, PAGE, listener, move |stream, seat| {
                let site = site.clone();
                async move { serve_seated(&site, stream, seat).await }
            }) => match never {},
        }
    })
}

/// Serves one connection over any stream, to its end.
pub async fn serve_stream<S>(site: &Site, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let admission = Admission::new(Limits::small());
    if let Ok(seat) = admission.enter(PAGE, None) {
        seat.clone().visit(serve_seated(site, stream, seat)).await;
    }
}

/// Serves one connection that has a seat.
pub(crate) async fn serve_seated<S>(site: &Site, stream: S, seat: Seat)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(site.router(seat));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST).max_buf_size(64 * 1024);
    // A broken connection affects no other.
    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}
