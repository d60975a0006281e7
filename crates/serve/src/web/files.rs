//! The page's own files. They are part of the binary, so that the page needs no other server.

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tapdeck_tape::export::theme_css;

use super::Site;
use super::guard::refuse;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [(&str, &str, &str); 12] = [
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("app.js", SCRIPT, include_str!("page/app.js")),
    ("entry.js", SCRIPT, include_str!("page/entry.js")),
    ("link.js", SCRIPT, include_str!("page/link.js")),
    ("overview.js", SCRIPT, include_str!("page/overview.js")),
    ("panel.js", SCRIPT, include_str!("page/panel.js")),
    ("recording.js", SCRIPT, include_str!("page/recording.js")),
    ("keymap.js", SCRIPT, include_str!("page/keymap.js")),
    ("painter.js", SCRIPT, include_str!("page/painter.js")),
    ("hands.js", SCRIPT, include_str!("page/hands.js")),
    ("dom.js", SCRIPT, include_str!("page/dom.js")),
    ("themes.js", SCRIPT, include_str!("page/themes.js")),
];

pub(super) async fn index() -> Response {
    ([(header::CONTENT_TYPE, HTML)], include_str!("page/index.html")).into_response()
}

/// The style sheet, with the colours of the usual theme.
pub(super) async fn style(State(site): State<Site>) -> Response {
    let text = theme_css(&site.0.options.themes.usual()) + include_str!("page/style.css");
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], text).into_response()
}

pub(super) async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => refuse(StatusCode::NOT_FOUND, "no such file"),
    }
}
