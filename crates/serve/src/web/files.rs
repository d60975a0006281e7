//! The page's own files. They are part of the binary, so that the page needs no other server.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::guard::refuse;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [(&str, &str, &str); 11] = [
    ("style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("app.js", SCRIPT, include_str!("page/app.js")),
    ("entry.js", SCRIPT, include_str!("page/entry.js")),
    ("link.js", SCRIPT, include_str!("page/link.js")),
    ("panel.js", SCRIPT, include_str!("page/panel.js")),
    ("recording.js", SCRIPT, include_str!("page/recording.js")),
    ("keymap.js", SCRIPT, include_str!("page/keymap.js")),
    ("painter.js", SCRIPT, include_str!("page/painter.js")),
    ("hands.js", SCRIPT, include_str!("page/hands.js")),
    ("dom.js", SCRIPT, include_str!("page/dom.js")),
];

pub(super) async fn index() -> Response {
    ([(header::CONTENT_TYPE, HTML)], include_str!("page/index.html")).into_response()
}

pub(super) async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => refuse(StatusCode::NOT_FOUND, "no such file"),
    }
}
