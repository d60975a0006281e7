//! Terminal model: bytes to a grid of cells, and back to bytes that redraw it.
/// stub
#[derive(Default)]
pub struct ModeWatch;
impl ModeWatch {
    /// x
    pub fn watch(&mut self, _: &[u8]) {}
    /// x
    pub fn undo(&self) -> Vec<u8> { Vec::new() }
    /// x
    pub fn redo(&self) -> Vec<u8> { Vec::new() }
    /// x
    pub fn is_full_screen(&self) -> bool { false }
}
