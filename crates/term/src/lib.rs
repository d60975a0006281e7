//! Terminal model: bytes to a grid of cells, and back to bytes that redraw it.
