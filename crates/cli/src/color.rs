//! When text is printed with colors.

use std::io::IsTerminal;

use clap::ValueEnum;

/// The value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Whether text on standard output gets colors.
    pub fn is_on(self) -> bool {
        let refused = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Color::Auto => std::io::stdout().is_terminal() && !refused(),
            Color::Always => true,
            Color::Never => false,
        }
    }
}
