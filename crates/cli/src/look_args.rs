//! How pictures look, as commands that make pictures take it.

use clap::Args;
use tapdeck::raster::Look;

/// How pictures look.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LookArgs {
    /// Font of pictures, by the name of an installed family [default: DejaVu Sans Mono, built in]
    #[arg(long, value_name = "FAMILY", help_heading = HEADING, hide_short_help = true)]
    font: Option<String>,
    /// Height of the text in pixels, from 4 to 200 [default: 14]
    #[arg(long, value_name = "PIXELS", help_heading = HEADING, hide_short_help = true)]
    font_size: Option<f32>,
    /// Pixels around the screen, up to 500 [default: 10]
    #[arg(long, value_name = "PIXELS", help_heading = HEADING, hide_short_help = true)]
    padding: Option<u32>,
    /// Draw a window with a title bar and a shadow around the screen
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    window: bool,
    /// Enlarge pictures, from 0.25 to 8 [default: 2 for one PNG, otherwise 1]
    #[arg(long, value_name = "FACTOR", help_heading = HEADING, hide_short_help = true)]
    scale: Option<f32>,
}

/// Where `--help` lists the options of pictures.
pub(crate) const HEADING: &str = "Pictures and films";

impl LookArgs {
    /// The look that was asked for, at this scale unless another was.
    pub(crate) fn look(&self, scale: f32) -> Result<Look, String> {
        let own = Look::default();
        let look = Look {
            font: self.font.clone(),
            font_size: self.font_size.unwrap_or(own.font_size),
            padding: self.padding.unwrap_or(own.padding),
            window: self.window,
            scale: self.scale.unwrap_or(scale),
            ..own
        };
        look.check().map_err(|e| e.to_string())?;
        Ok(look)
    }

    /// Whether any of it was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.font.is_some()
            || self.font_size.is_some()
            || self.padding.is_some()
            || self.window
            || self.scale.is_some()
    }
}
