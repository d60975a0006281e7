//! `/mcp`: the Model Context Protocol, with the credentials of the page. A client may do what its
//! credential grants, and never more than the page's user allows to clients of MCP.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use tapdeck_core::Right;

use super::Site;
use super::guard::{Pass, refuse};
use super::open::start;
use crate::admission::Seat;
use crate::mcp::{Access, Allow};

/// The path.
pub(super) const PATH: &str = "/mcp";

pub(super) async fn serve(State(site): State<Site>, pass: Pass, mut request: Request) -> Response {
    let Some(endpoint) = &site.0.mcp else {
        return refuse(StatusCode::NOT_FOUND, "MCP is off here");
    };
    // The connection keeps its seat; a request that is remembered must not.
    request.extensions_mut().remove::<Pass>();
    request.extensions_mut().remove::<Seat>();
    endpoint.serve(request, access(&site, &pass)).await
}

/// Returns what a pass lets its bearer do.
fn access(site: &Site, pass: &Pass) -> Access {
    let allow = if site.may_open(pass) {
        Allow::Open
    } else if pass.authority.grants(Right::Drive) {
        Allow::Drive
    } else {
        Allow::Read
    };
    let (token, authority) = (pass.token.clone(), pass.authority);
    let (watched, opener) = ((site.clone(), token.clone()), (site.clone(), token.clone()));
    Access {
        key: token,
        allow,
        revoked: Arc::new(move || {
            let (site, token) = watched.clone();
            Box::pin(async move { site.revoked(&token, authority).await })
        }),
        start: Arc::new(move |new| {
            let (site, token) = opener.clone();
            Box::pin(async move { start(&site, &token, new).await.map_err(|e| e.to_string()) })
        }),
    }
}
