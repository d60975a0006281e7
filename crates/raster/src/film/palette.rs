//! The palette of a frame: its colours as they are where they fit, and otherwise the 255 that come
//! closest to them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Colours of a frame, without the transparent one.
pub(super) const MAX: usize = 255;
/// More colours than this are first rounded, so that the time for a frame is bounded.
const MANY: usize = 6000;

pub(super) type Colour = [u8; 3];

/// Hashes colours, of which a frame may have thousands. Different ones have different hashes.
#[derive(Default)]
struct ColourHash(u64);

impl Hasher for ColourHash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        let mixed = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    }
}

/// How often each colour was seen, in the order in which they appeared.
#[derive(Debug, Default)]
pub(super) struct Census {
    index: HashMap<Colour, u32, BuildHasherDefault<ColourHash>>,
    list: Vec<(Colour, u32)>,
}

impl Census {
    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.list.clear();
    }

    /// Counts some pixels of a colour, and returns its number.
    pub(super) fn count(&mut self, colour: Colour, pixels: u32) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.index.entry(colour).or_insert(next);
        match self.list.get_mut(number as usize) {
            Some((_, n)) => *n += pixels,
            None => self.list.push((colour, pixels)),
        }
        number
    }

    /// A palette, and the entry in it for each colour by its number.
    pub(super) fn palette(&self) -> (Vec<Colour>, Vec<u8>) {
        if self.list.len() <= MAX {
            let colours = self.list.iter().map(|(c, _)| *c).collect();
            return (colours, (0..self.list.len()).map(|i| i as u8).collect());
        }
        let mut bits = 8;
        let (mut points, mut of) = (self.list.clone(), (0..self.list.len() as u32).collect::<Vec<_>>());
        while points.len() > MANY && bits > 4 {
            bits -= 1;
            (points, of) = rounded(&self.list, bits);
        }
        let mut palette = cut(&points);
        let mut nearest = Vec::new();
        for _ in 0..3 {
            nearest = assign(&points, &palette);
            settle(&points, &nearest, &mut palette);
        }
        (palette, of.into_iter().map(|i| nearest[i as usize]).collect())
    }
}

/// The colours with so many bits a channel, each the mean of those that fall together.
fn rounded(list: &[(Colour, u32)], bits: u32) -> (Vec<(Colour, u32)>, Vec<u32>) {
    let mut index: HashMap<Colour, u32> = HashMap::new();
    let mut sums: Vec<([u64; 3], u64)> = Vec::new();
    let mut of = Vec::with_capacity(list.len());
    for (colour, n) in list {
        let next = sums.len() as u32;
        let i = *index.entry(colour.map(|part| part >> (8 - bits))).or_insert(next);
        if i == next {
            sums.push(([0; 3], 0));
        }
        let (sum, count) = &mut sums[i as usize];
        (0..3).for_each(|c| sum[c] += u64::from(colour[c]) * u64::from(*n));
        *count += u64::from(*n);
        of.push(i);
    }
    let mean = |(sum, n): ([u64; 3], u64)| (sum.map(|s| (s / n.max(1)) as u8), n.min(u32::MAX.into()) as u32);
    (sums.into_iter().map(mean).collect(), of)
}

/// A group of colours, with the axis along which they differ most.
struct Group {
    points: Vec<(Colour, u32)>,
    axis: usize,
    mean: f64,
    spread: f64,
}

impl Group {
    fn new(points: Vec<(Colour, u32)>) -> Self {
        let total: f64 = points.iter().map(|(_, n)| f64::from(*n)).sum();
        let measure = |axis: usize| {
            let weighted = |f: &dyn Fn(f64) -> f64| -> f64 {
                points.iter().map(|(c, n)| f(f64::from(c[axis])) * f64::from(*n)).sum()
            };
            let mean = weighted(&|v| v) / total.max(1.0);
            (mean, weighted(&|v| (v - mean) * (v - mean)))
        };
        let sides = [measure(0), measure(1), measure(2)];
        // The eye tells greens apart best.
        let weights = [2.0, 4.0, 3.0];
        let by = |a: &usize, b: &usize| (sides[*a].1 * weights[*a]).total_cmp(&(sides[*b].1 * weights[*b]));
        let axis = (0..3).max_by(by).unwrap_or(0);
        Self { axis, mean: sides[axis].0, spread: sides[axis].1 * weights[axis], points }
    }
}

/// Divides the colours until there are as many groups as a palette has entries.
fn cut(points: &[(Colour, u32)]) -> Vec<Colour> {
    let mut groups = vec![Group::new(points.to_vec())];
    while groups.len() < MAX {
        let widest = (0..groups.len()).max_by(|a, b| groups[*a].spread.total_cmp(&groups[*b].spread));
        let Some(widest) = widest.filter(|i| groups[*i].spread > 0.0) else { break };
        let Group { points, axis, mean, .. } = groups.swap_remove(widest);
        let (low, high) = points.into_iter().partition(|(c, _)| f64::from(c[axis]) <= mean);
        groups.extend([Group::new(low), Group::new(high)]);
    }
    let mut palette = vec![[0; 3]; groups.len()];
    for (entry, group) in palette.iter_mut().zip(&groups) {
        *entry = centre(&group.points);
    }
    palette
}

fn centre(points: &[(Colour, u32)]) -> Colour {
    let total: u64 = points.iter().map(|(_, n)| u64::from(*n)).sum();
    [0, 1, 2].map(|axis| {
        let sum: u64 = points.iter().map(|(c, n)| u64::from(c[axis]) * u64::from(*n)).sum();
        ((sum + total / 2) / total.max(1)) as u8
    })
}

fn distance(a: Colour, b: Colour) -> u32 {
    let d = |i: usize| (i32::from(a[i]) - i32::from(b[i])).pow(2) as u32;
    2 * d(0) + 4 * d(1) + 3 * d(2)
}

/// The nearest entry for each colour.
fn assign(points: &[(Colour, u32)], palette: &[Colour]) -> Vec<u8> {
    let nearest = |colour: Colour| {
        let by = |i: &usize| distance(palette[*i], colour);
        (0..palette.len()).min_by_key(by).unwrap_or(0) as u8
    };
    points.iter().map(|(colour, _)| nearest(*colour)).collect()
}

/// Moves each entry into the middle of the colours that it stands for.
fn settle(points: &[(Colour, u32)], nearest: &[u8], palette: &mut [Colour]) {
    let mut sums = vec![([0u64; 3], 0u64); palette.len()];
    for ((colour, n), i) in points.iter().zip(nearest) {
        let (sum, total) = &mut sums[usize::from(*i)];
        (0..3).for_each(|c| sum[c] += u64::from(colour[c]) * u64::from(*n));
        *total += u64::from(*n);
    }
    for (entry, (sum, total)) in palette.iter_mut().zip(sums).filter(|(_, (_, total))| *total > 0) {
        *entry = sum.map(|s| ((s + total / 2) / total) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_colours_stay_as_they_are() {
        let mut census = Census::default();
        for i in 0..=254 {
            assert_eq!(census.count([i, 0, 255 - i], 1), i.into());
        }
        let (palette, of) = census.palette();
        assert!((0..=254).all(|i: u8| palette[usize::from(of[usize::from(i)])] == [i, 0, 255 - i]));
    }

    #[test]
    fn many_colours_are_close_to_what_they_were() {
        // All colours of a cube in steps of 8, and a text colour that covers most of the picture.
        let mut census = Census::default();
        let mut colours = vec![[216, 220, 228]];
        for n in 0..32 * 32 * 32_u32 {
            colours.push([(n >> 10 << 3) as u8, ((n >> 5 & 31) << 3) as u8, ((n & 31) << 3) as u8]);
        }
        for (i, colour) in colours.iter().enumerate() {
            census.count(*colour, if i == 0 { 1_000_000 } else { 1 });
        }
        let (palette, of) = census.palette();
        assert!(palette.len() <= MAX);
        let off = |i: usize| -> u32 {
            let (a, b) = (colours[i], palette[usize::from(of[i])]);
            (0..3).map(|c| u32::from(a[c].abs_diff(b[c]))).sum()
        };
        assert!(off(0) <= 6, "the colour of most pixels is {} off", off(0));
        let mean = (1..colours.len()).map(off).sum::<u32>() as usize / colours.len();
        assert!(mean <= 45, "the colours are {mean} off");
    }
}
