//! What `tapdeck --version` says: version, commit and features.

use std::sync::LazyLock;

/// The optional features, and whether each is in this build.
const FEATURES: [(&str, bool); 9] = [
    ("docker", cfg!(feature = "docker")),
    ("encrypt", cfg!(feature = "encrypt")),
    ("hotkeys", cfg!(feature = "hotkeys")),
    ("mcp", cfg!(feature = "mcp")),
    ("net", cfg!(feature = "net")),
    ("raster", cfg!(feature = "raster")),
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

#[cfg(test)]
mod tests {
    use super::FEATURES;

    /// `--version` left out two features that the build had.
    #[test]
    fn every_feature_of_the_command_is_named() {
        let manifest: toml::Table = include_str!("../Cargo.toml").parse().expect("TOML");
        let features = manifest["features"].as_table().expect("a table").keys();
        let features: Vec<&str> = features.map(String::as_str).filter(|name| *name != "default").collect();
        let named: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
        assert_eq!(named, features);
    }
}
