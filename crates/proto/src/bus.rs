//! The bus: text frames between a live session and the programs that watch and drive it.
