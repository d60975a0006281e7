//! A stream that ends with the task that holds its other end. The ssh library serves a connection
//! in a task of its own, which cannot be told to stop before the key exchange.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// A connection that breaks when its [`oneshot::Sender`] is dropped.
pub(super) struct Leash {
    stream: TcpStream,
    held: oneshot::Receiver<Infallible>,
}

impl Leash {
    pub(super) fn new(stream: TcpStream) -> (Self, oneshot::Sender<Infallible>) {
        let (holder, held) = oneshot::channel();
        (Self { stream, held }, holder)
    }

    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match Pin::new(&mut self.held).poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(_) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

impl AsyncRead for Leash {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Leash {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
