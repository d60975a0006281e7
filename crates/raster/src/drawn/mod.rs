//! Characters that are drawn by code, because they have to meet their neighbours without a seam at
//! every size: lines and boxes, blocks, braille, the symbols of powerline, and the mosaics of old
//! computers. Some symbols that agents use are drawn too, because few fonts have them.

mod boxes;
mod mosaic;
mod powerline;
mod symbols;

/// How much of each pixel of a character's cells is covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) alpha: Vec<u8>,
}

/// Samples of a pixel along each side, where an edge is not straight.
const SAMPLES: usize = 8;

impl Mask {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self { width, height, alpha: vec![0; width * height] }
    }

    /// Covers a rectangle, cut to the cell.
    pub(crate) fn rect(&mut self, x0: i32, y0: i32, x1: i32, y1: i32, alpha: u8) {
        let cut = |v: i32, limit: usize| v.clamp(0, limit as i32) as usize;
        let (x0, x1) = (cut(x0, self.width), cut(x1, self.width));
        for y in cut(y0, self.height)..cut(y1, self.height) {
            if x0 < x1 {
                self.alpha[y * self.width + x0..y * self.width + x1].fill(alpha);
            }
        }
    }

    /// Covers a part of the cell, in eighths and in any other equal parts: neighbours round to the
    /// same pixel.
    fn part(&mut self, of: (usize, usize), from: (usize, usize), to: (usize, usize), alpha: u8) {
        let at = |n: usize, of: usize, side: usize| ((side * n * 2 + of) / (of * 2)) as i32;
        let (w, h) = (self.width, self.height);
        self.rect(at(from.0, of.0, w), at(from.1, of.1, h), at(to.0, of.0, w), at(to.1, of.1, h), alpha);
    }

    /// Covers what lies inside of a shape. Coordinates are pixels.
    fn shape(&mut self, alpha: u8, inside: impl Fn(f32, f32) -> bool) {
        let step = 1.0 / SAMPLES as f32;
        for y in 0..self.height {
            for x in 0..self.width {
                let mut hits = 0;
                for sy in 0..SAMPLES {
                    for sx in 0..SAMPLES {
                        let at = |p: usize, s: usize| p as f32 + (s as f32 + 0.5) * step;
                        hits += usize::from(inside(at(x, sx), at(y, sy)));
                    }
                }
                let covered = (hits * usize::from(alpha) / (SAMPLES * SAMPLES)) as u8;
                let pixel = &mut self.alpha[y * self.width + x];
                *pixel = (*pixel).max(covered);
            }
        }
    }
}

/// Whether a point is at most `half` away from the line through `a` and `b`.
fn near_line((x, y): (f32, f32), a: (f32, f32), b: (f32, f32), half: f32) -> bool {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    ((x - a.0) * dy - (y - a.1) * dx).abs() <= half * dx.hypot(dy)
}

/// Draws a character into cells of a size, with lines of a thickness. `None` for the characters
/// that a font draws.
pub(crate) fn draw(ch: char, width: usize, height: usize, line: usize) -> Option<Mask> {
    let c = u32::from(ch);
    let drawing: fn(&mut Mask, u32, i32) = match c {
        0x2500..=0x257f => boxes::draw,
        0x23be | 0x23bf | 0x23f4..=0x23fa | 0xe0a0 | 0xe0a2 => symbols::draw,
        0xe0b0..=0xe0bf => powerline::draw,
        0x2580..=0x259f | 0x2800..=0x28ff | 0x1cd00..=0x1cde5 | 0x1cea0 | 0x1cea3 | 0x1cea8 | 0x1ceab => {
            mosaic::draw
        }
        0x1fba0..=0x1fbae => boxes::diagonals,
        0x1fb00..=0x1fb92 | 0x1fb94..=0x1fb9f | 0x1fbe6 | 0x1fbe7 => mosaic::draw,
        _ => return None,
    };
    let mut mask = Mask::new(width, height);
    drawing(&mut mask, c, line as i32);
    Some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(mask: &Mask, side: usize) -> Vec<u8> {
        let (w, h) = (mask.width, mask.height);
        match side {
            0 => mask.alpha[..w].to_vec(),
            1 => (0..h).map(|y| mask.alpha[y * w + w - 1]).collect(),
            2 => mask.alpha[(h - 1) * w..].to_vec(),
            _ => (0..h).map(|y| mask.alpha[y * w]).collect(),
        }
    }

    /// A line that reaches an edge of its cell must go on in the same pixels of the next cell.
    #[test]
    fn lines_meet_at_the_edges_of_cells_at_every_size() {
        for (w, h) in [(5, 11), (7, 14), (8, 16), (9, 19), (10, 20), (13, 27), (16, 32), (31, 65)] {
            for line in 1..=(w / 6).max(1) {
                let draw = |ch| draw(ch, w, h, line).expect("a drawn character");
                for (one, other, side) in [
                    ('─', '┐', 1),
                    ('╭', '─', 1),
                    ('┌', '╮', 1),
                    ('═', '╗', 1),
                    ('━', '┓', 1),
                    ('╔', '╦', 1),
                    ('┼', '┤', 1),
                    ('╠', '╬', 1),
                    ('╞', '═', 1),
                    ('╼', '━', 1),
                    ('│', '└', 2),
                    ('╭', '│', 2),
                    ('║', '╚', 2),
                    ('┃', '┻', 2),
                    ('╓', '║', 2),
                    ('┬', '╰', 2),
                    ('╽', '┃', 2),
                    ('█', '█', 1),
                    ('▄', '▟', 1),
                    ('▌', '▙', 2),
                ] {
                    let (a, b) = (edge(&draw(one), side), edge(&draw(other), (side + 2) % 4));
                    assert_eq!(a, b, "{one}{other} at {w}x{h}, lines of {line}");
                    assert!(a.contains(&255), "{one} does not reach its edge at {w}x{h}");
                }
            }
        }
    }

    /// Where two characters are each other's complement, they cover each pixel exactly once.
    #[test]
    fn complements_fill_the_cell() {
        for (w, h) in [(5, 11), (8, 16), (9, 19), (17, 33)] {
            for (one, other) in [
                ('▀', '▄'),
                ('▌', '▐'),
                ('▘', '▟'),
                ('▚', '▞'),
                ('🮂', '▆'),
                ('▎', '🮊'),
                ('🬀', '🬻'),
                ('🬂', '🬹'),
                ('🬐', '🬫'),
                ('🮐', '▒'),
                ('🮕', '🮖'),
            ] {
                let (a, b) = (draw(one, w, h, 1).expect("drawn"), draw(other, w, h, 1).expect("drawn"));
                let sums = a.alpha.iter().zip(&b.alpha).map(|(a, b)| u32::from(*a) + u32::from(*b));
                assert!(sums.clone().all(|sum| (254..=256).contains(&sum)), "{one}{other} at {w}x{h}");
            }
        }
    }

    #[test]
    fn octants_are_numbered_as_unicode_does() {
        // BLOCK OCTANT-3, -23, -123 and -4 are the first, BLOCK OCTANT-2345678 the last.
        let covered = |c: u32| draw(char::from_u32(c).expect("a character"), 2, 4, 1).expect("drawn").alpha;
        assert_eq!(covered(0x1cd00), [0, 0, 255, 0, 0, 0, 0, 0]);
        assert_eq!(covered(0x1cd01), [0, 255, 255, 0, 0, 0, 0, 0]);
        assert_eq!(covered(0x1cd02), [255, 255, 255, 0, 0, 0, 0, 0]);
        assert_eq!(covered(0x1cd03), [0, 0, 0, 255, 0, 0, 0, 0]);
        assert_eq!(covered(0x1cde5), [0, 255, 255, 255, 255, 255, 255, 255]);
    }

    #[test]
    fn each_character_covers_something_at_every_size() {
        let all = (0x2500..=0x259f).chain(0x2801..=0x28ff).chain(0xe0b0..=0xe0bf).chain(0x1cd00..=0x1cde5);
        for c in all.chain(0x1fb00..=0x1fb92).chain(0x1fb94..=0x1fbae) {
            let ch = char::from_u32(c).expect("a character");
            for (w, h) in [(8, 16), (20, 41)] {
                let mask = draw(ch, w, h, (w / 8).max(1)).expect("drawn");
                assert!(mask.alpha.iter().any(|a| *a > 0), "{ch} U+{c:04X} at {w}x{h}");
            }
        }
        assert_eq!(draw('a', 8, 16, 1), None);
    }
}
