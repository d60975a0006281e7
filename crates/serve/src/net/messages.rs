//! A stream of bytes over messages, such as those of a WebSocket. Message boundaries mean nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest message that is sent.
const MESSAGE: usize = 64 * 1024;

/// A message, as the stream sees it.
pub(crate) enum Message {
    /// Bytes of the stream.
    Bytes(Bytes),
    /// A ping or the like, which is ignored.
    Other,
    /// The end of the stream.
    End,
}

/// Reads incoming messages as bytes.
pub(crate) struct Reader<S> {
    messages: S,
    left: Bytes,
}

impl<S> Reader<S> {
    pub(crate) fn new(messages: S) -> Self {
        Self { messages, left: Bytes::new() }
    }
}

impl<S, M, E> AsyncRead for Reader<S>
where
    S: Stream<Item = Result<M, E>> + Unpin,
    M: Into<Message>,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.left.is_empty() {
            match ready!(Pin::new(&mut self.messages).poll_next(cx)) {
                Some(Ok(message)) => match message.into() {
                    Message::Bytes(bytes) => self.left = bytes,
                    Message::Other => {}
                    Message::End => return Poll::Ready(Ok(())),
                },
                // A broken connection has nothing more to read.
                Some(Err(_)) | None => return Poll::Ready(Ok(())),
            }
        }
        let n = self.left.len().min(buf.remaining());
        buf.put_slice(&self.left[..n]);
        self.left.advance(n);
        Poll::Ready(Ok(()))
    }
}

/// Writes bytes as outgoing messages.
pub(crate) struct Writer<S, F> {
    messages: S,
    make: F,
}

impl<S, F> Writer<S, F> {
    pub(crate) fn new(messages: S, make: F) -> Self {
        Self { messages, make }
    }
}

fn broken<E>(_: E) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl<S, F, M> AsyncWrite for Writer<S, F>
where
    S: Sink<M> + Unpin,
    F: Fn(Bytes) -> M + Unpin,
{
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.messages).poll_ready(cx)).map_err(broken)?;
        let piece = &buf[..buf.len().min(MESSAGE)];
        let message = (self.make)(Bytes::copy_from_slice(piece));
        Pin::new(&mut self.messages).start_send(message).map_err(broken)?;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.messages).poll_flush(cx).map_err(broken)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.messages).poll_close(cx).map_err(broken)
    }
}
