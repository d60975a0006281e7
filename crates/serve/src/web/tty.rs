//! The tty wire over a WebSocket: one session for each socket. The token in the negotiation says
//! what its client may do; [`super::guard`] has kept out other pages.

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::Message;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;

use super::Site;
use super::guard::refuse;
use super::relay::{Asked, meet};
use crate::admission::Seat;
use crate::net::{Peer, messages, serve_stream_of};

pub(super) async fn upgrade(
    State(site): State<Site>,
    Extension(seat): Extension<Seat>,
    headers: HeaderMap,
    ws: Asked,
) -> Response {
    let Some(server) = site.0.options.tty.clone() else {
        return refuse(StatusCode::NOT_FOUND, "no sessions are opened here");
    };
    meet(
        ws,
        &headers,
        |ws| ws,
        async move |socket| {
            let (sink, source) = socket.split();
            let writer = messages::Writer::new(sink, Message::Binary);
            let reader = messages::Reader::new(source);
            let served = serve_stream_of(server, reader, writer, Peer::Stranger, Some(&seat));
            seat.keep(served).await;
        },
    )
}

impl From<Message> for messages::Message {
    fn from(message: Message) -> Self {
        match message {
            Message::Binary(bytes) => messages::Message::Bytes(bytes),
            Message::Close(_) => messages::Message::End,
            _ => messages::Message::Other,
        }
    }
}
