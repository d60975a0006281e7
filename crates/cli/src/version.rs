//! What `tapdeck --version` says: version, commit and features.

use std::sync::LazyLock;

/// The optional features, and whether each is in this build.
const FEATURES: [(&str, bool); 6] = [
    ("docker", cfg!(feature = "docker")),
    ("hotkeys", cfg!(feature = "hotkeys")),
    ("net", cfg!(feature = "net")),
    ("ssh", cfg!(feature = "ssh")),
    ("tui", cfg!(feature = "tui")),
    ("web", cfg!(feature = "web")),
];

/// The version with the commit, if the build knows it, and the features in a second line.
static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("TAPDECK_BUILT_FROM").map(|commit| format!(" ({commit})")).unwrap_or_default();
    let on: Vec<&str> = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    let on = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    format!("{}{commit}\nfeatures: {on}", env!("CARGO_PKG_VERSION"))
});

/// Returns what `--version` prints behind the name.
pub(crate) fn long() -> &'static str {
    &LONG
}
