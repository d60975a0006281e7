//! Parameters of control sequences, and reading their numbers quickly.

/// Parameters kept of one CSI or DCS; the rest are ignored.
pub(crate) const MAX_PARAMS: usize = 32;

/// Parameters of a control sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    pub(super) values: [u16; MAX_PARAMS],
    /// Bit i: parameter i was written out, if only as 0.
    pub(super) given: u32,
    /// Bit i: parameter i follows a colon and belongs to the one before.
    pub(super) sub: u32,
    pub(super) len: u8,
}

impl Params {
    pub(crate) const EMPTY: Self = Self { values: [0; MAX_PARAMS], given: 0, sub: 0, len: 0 };

    /// Reads a parameter string of nothing but digits and separators.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut p = Self::EMPTY;
        let mut value = 0u32;
        for &b in text {
            let n = p.len();
            match b {
                b'0'..=b'9' => {
                    value = (value * 10 + u32::from(b - b'0')).min(0xf_ffff);
                    if n < MAX_PARAMS {
                        p.given |= 1 << n;
                    }
                }
                b';' | b':' => p.push(std::mem::take(&mut value), b == b':'),
                _ => return None,
            }
        }
        if !text.is_empty() {
            p.push(value, false);
        }
        Some(p)
    }

    /// Ends a parameter; `sub`: the next belongs to it.
    pub(super) fn push(&mut self, value: u32, sub: bool) {
        let n = self.len();
        if n < MAX_PARAMS {
            self.values[n] = value.min(0xffff) as u16;
            self.len += 1;
            if sub && n + 1 < MAX_PARAMS {
                self.sub |= 1 << (n + 1);
            }
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The value, 0 when absent.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> u16 {
        if i < self.len() { self.values[i] } else { 0 }
    }

    /// The value, or `default` when absent or 0.
    #[inline]
    pub(crate) fn or(&self, i: usize, default: u16) -> usize {
        let v = self.get(i);
        usize::from(if v == 0 { default } else { v })
    }

    /// The value when it was written out.
    #[inline]
    pub(crate) fn opt(&self, i: usize) -> Option<u16> {
        (i < self.len() && self.given >> i & 1 == 1).then(|| self.values[i])
    }

    /// Whether parameter `i` follows a colon.
    #[inline]
    pub(crate) fn is_sub(&self, i: usize) -> bool {
        i < self.len() && self.sub >> i & 1 == 1
    }

    /// Iterates over the values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.values[..self.len()].iter().copied()
    }
}

/// A finished CSI sequence, or the opening of a DCS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Csi {
    pub(crate) params: Params,
    /// One of `<=>?`, or 0.
    pub(crate) prefix: u8,
    /// The intermediates; a second one is in the upper byte.
    pub(crate) inter: u16,
    pub(crate) last: u8,
}

/// The number of one to three digits at `i`, how many they are, and the byte after them.
#[inline(always)]
pub(super) fn short_number(bytes: &[u8], i: usize) -> Option<(u16, usize, u8)> {
    let four = bytes.get(i..)?.first_chunk::<4>()?;
    let word = u32::from_le_bytes(*four);
    let values = word ^ 0x3030_3030;
    // The top bit of each byte that is no digit; carries only reach bytes behind the first of
    // those.
    let other = (values.wrapping_add(0x7676_7676) | values) & 0x8080_8080;
    // 7, 15, 23 or 31 for the first of them.
    let place = other.trailing_zeros();
    if other == 0 || place == 7 {
        return None;
    }
    let bits = place - 7;
    let aligned = values << (32 - bits);
    let number = (aligned >> 24) + (aligned >> 16 & 0xff) * 10 + (aligned >> 8 & 0xff) * 100;
    Some((number as u16, (bits / 8) as usize, (word >> bits) as u8))
}
