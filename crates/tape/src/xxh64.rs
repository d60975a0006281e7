//! XXH64, of which a Zstandard frame bears the low half as its checksum. The library that makes
//! frames can only end one behind everything it was given; a recording whose disk is full has to
//! end behind what is on the disk.

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

const STRIPE: usize = 32;

/// The hash of what was given so far, with the seed 0.
#[derive(Debug, Clone)]
pub(crate) struct Xxh64 {
    lanes: [u64; 4],
    rest: [u8; STRIPE],
    len: u64,
}

impl Xxh64 {
    pub(crate) fn new() -> Self {
        let lanes = [P1.wrapping_add(P2), P2, 0, 0_u64.wrapping_sub(P1)];
        Self { lanes, rest: [0; STRIPE], len: 0 }
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        let held = (self.len % STRIPE as u64) as usize;
        self.len += bytes.len() as u64;
        if held > 0 {
            let take = bytes.len().min(STRIPE - held);
            self.rest[held..held + take].copy_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if held + take < STRIPE {
                return;
            }
            let stripe = self.rest;
            self.stripe(&stripe);
        }
        let (stripes, rest) = bytes.as_chunks::<STRIPE>();
        for stripe in stripes {
            self.stripe(stripe);
        }
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    fn stripe(&mut self, stripe: &[u8; STRIPE]) {
        for (lane, word) in self.lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        let [a, b, c, d] = self.lanes;
        let mut hash = if self.len < STRIPE as u64 {
            P5
        } else {
            let sum = a.rotate_left(1).wrapping_add(b.rotate_left(7)).wrapping_add(c.rotate_left(12));
            let sum = sum.wrapping_add(d.rotate_left(18));
            [a, b, c, d]
                .into_iter()
                .fold(sum, |hash, lane| (hash ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4))
        };
        hash = hash.wrapping_add(self.len);
        let rest = &self.rest[..(self.len % STRIPE as u64) as usize];
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            hash ^= round(0, u64::from_le_bytes(*word));
            hash = hash.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        }
        let (halves, rest) = rest.as_chunks::<4>();
        for half in halves {
            hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(P1);
            hash = hash.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        }
        for byte in rest {
            hash ^= u64::from(*byte).wrapping_mul(P5);
            hash = hash.rotate_left(11).wrapping_mul(P1);
        }
        hash = (hash ^ hash >> 33).wrapping_mul(P2);
        hash = (hash ^ hash >> 29).wrapping_mul(P3);
        hash ^ hash >> 32
    }
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_however_the_bytes_come() {
        for (text, hash) in [("", 0xEF46_DB37_51D8_E999), ("abc", 0x44BC_2CF5_AD77_0999_u64)] {
            let mut own = Xxh64::new();
            text.bytes().for_each(|b| own.update(&[b]));
            assert_eq!(own.digest(), hash, "{text:?}");
        }
    }
}
