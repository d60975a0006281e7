//! Where the user's configuration is.

use std::path::PathBuf;

/// The file that `$TAPDECK_CONFIG` names.
pub fn named_config_file() -> Option<PathBuf> {
    std::env::var_os("TAPDECK_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The configuration file: `$TAPDECK_CONFIG`, or `tapdeck/config.toml` under `$XDG_CONFIG_HOME`
/// (`~/.config`). It need not exist.
pub fn config_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base =
        || folder("XDG_CONFIG_HOME").or_else(|| tapdeck_host::home_folder().map(|home| home.join(".config")));
    named_config_file().or_else(|| base().map(|base| base.join("tapdeck/config.toml")))
}

/// The folder of the configuration file.
pub fn config_folder() -> Option<PathBuf> {
    config_file().and_then(|path| path.parent().map(PathBuf::from))
}
