//! Views in the terminal: the viewer and the dashboard. What they show comes from the terminal model; what is typed
//! comes as events; neither knows where either is from, so both are tested as data: keys in, screen out. Only
//! [`screen`] touches the real terminal.

pub mod canvas;
pub mod dash;
pub mod keys;
pub mod live;
pub mod screen;
pub mod session;
#[cfg(test)]
mod testing;
pub mod theme;
pub mod view;
