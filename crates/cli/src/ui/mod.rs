//! Views in the terminal: the viewer and the dashboard. What they show comes from the terminal
//! model, and input comes as events. They know the source of neither, so they are tested as
//! data: keys in, screen out. Only [`screen`] touches the real terminal.

pub mod alerts;
pub mod canvas;
pub mod dash;
mod help;
pub mod keys;
mod line_edit;
pub mod live;
pub mod screen;
pub mod session;
mod status_line;
pub mod styles;
#[cfg(test)]
mod testing;
pub mod view;
