//! Random numbers that a seed brings back.

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn chance(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of so many versions: mostly the newest.
    pub(crate) fn version(&mut self, n: usize) -> usize {
        if self.chance(3) { self.below(n) } else { n - 1 }
    }

    /// Lines of text, at most this long.
    pub(crate) fn text(&mut self, at_most: usize) -> Vec<u8> {
        let len = 1 + self.below(at_most);
        let mut text = Vec::with_capacity(len + 8);
        while text.len() < len {
            // Some of it can be compressed, some of it cannot.
            match self.below(3) {
                0 => text.extend(format!("{:016x}", self.next()).bytes()),
                1 => text.extend(b"all work and no play "),
                _ => text.extend(b"\x1b[1mline\x1b[0m\r\n"),
            }
        }
        text.truncate(len);
        text
    }
}
