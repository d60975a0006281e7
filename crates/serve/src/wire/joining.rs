//! How somebody wants to be attached to a session that runs already, read out of their negotiation.

use serde_json::Value;
use tapdeck_core::WinSize;

use super::{Tty, WireError, fields};

/// A wish to be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joining<'a> {
    /// Where it is to run; a session of its own knows one answer.
    pub(crate) backend: Option<&'a str>,
    /// What lets the client in.
    pub(crate) token: Option<&'a str>,
    /// A name for people.
    pub(crate) name: Option<&'a str>,
    /// Which session, where a server knows several.
    pub(crate) session: Option<&'a str>,
    /// Only watch.
    pub(crate) read_only: bool,
    /// Take the stick from whoever has it.
    pub(crate) takeover: bool,
    /// Do not even claim it.
    pub(crate) watch: bool,
    /// The screen without what was on it before.
    pub(crate) screen_only: bool,
    /// Where the rows of the first picture end.
    pub(crate) rows: bool,
    /// The size of the client's own terminal.
    pub(crate) size: Option<WinSize>,
}

impl<'a> Joining<'a> {
    /// Reads a negotiation.
    pub(crate) fn from_json(request: &'a Value) -> Result<Self, WireError> {
        let text = |key: &str| fields::text(request, key).map_err(WireError::Json);
        let flag = |key: &str| fields::flag(request, key, false).map_err(WireError::Json);
        match text("carriage")? {
            None | Some("raw") => {}
            Some(other) => return Err(super::negotiation::no_carriage(other)),
        }
        let tty = request.get("tty").filter(|t| !t.is_null());
        let own = tty.map(Tty::from_json).transpose()?;
        // A terminal that does not say its size leaves the session as it is.
        let size = own.filter(|_| tty.is_some_and(|t| t.get("cols").is_some())).map(|own| own.size);
        Ok(Self {
            backend: text("backend")?,
            token: text("token")?,
            name: text("name")?,
            session: text("session")?,
            read_only: flag("read_only")?,
            takeover: flag("takeover")?,
            watch: flag("watch")?,
            screen_only: flag("screen_only")?,
            rows: flag("rows")?,
            size,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wish_of_the_wrong_kind_is_refused_by_name() {
        let ask = json!({
            "backend": "attach", "session": "build", "read_only": true, "takeover": null,
            "tty": {"cols": 100, "rows": 30}, "of_another_version": [1],
        });
        let joining = Joining::from_json(&ask).expect("fine");
        assert_eq!((joining.session, joining.read_only, joining.takeover), (Some("build"), true, false));
        assert_eq!(joining.size, Some(WinSize::cells(100, 30)));
        assert_eq!(Joining::from_json(&json!({"tty": {"term": "vt100"}})).expect("fine").size, None);
        for (key, value) in [
            ("read_only", json!("yes")),
            ("read_only", json!(1)),
            ("takeover", json!("no")),
            ("watch", json!(0)),
            ("screen_only", json!([])),
            ("rows", json!(24)),
            ("session", json!(5)),
            ("session", json!("a\0b")),
            ("name", json!({})),
            ("token", json!(["t"])),
            ("carriage", json!("boat")),
            ("tty", json!(true)),
            ("tty", json!({"cols": 70_000, "rows": 24})),
            ("tty", json!({"cols": -1, "rows": 24})),
        ] {
            let ask = json!({"backend": "attach", key: value});
            let error = Joining::from_json(&ask).expect_err("it makes no sense").to_string();
            assert!(error.contains(key), "{ask}: {error}");
        }
    }
}
