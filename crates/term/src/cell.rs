//! One cell of the grid in eight bytes: what is drawn, and the number of its style.

use crate::style::StyleId;

/// Text and style of one column.
///
/// The text is a scalar value, or a reference to a cluster of several; 0 is a cell that nothing was
/// written to. A wide character occupies a lead cell and a tail cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Cell {
    pub(crate) text: u32,
    pub(crate) style: StyleId,
}

/// The text is an index into the clusters.
pub(crate) const CLUSTER: u32 = 1 << 31;
/// The first half of a wide character.
pub(crate) const WIDE: u32 = 1 << 30;
/// The second half of a wide character.
pub(crate) const TAIL: u32 = 1 << 29;
/// Left empty at the right edge because a wide character did not fit there.
pub(crate) const PAD: u32 = 1 << 28;
const VALUE: u32 = (1 << 28) - 1;

impl Cell {
    pub(crate) const BLANK: Self = Self { text: 0, style: StyleId(0) };

    #[inline]
    pub(crate) fn blank(style: StyleId) -> Self {
        Self { text: 0, style }
    }

    /// What becomes of half a wide character: a space that keeps its looks.
    #[inline]
    pub(crate) fn torn(self) -> Self {
        Self { text: 0x20, style: self.style }
    }

    #[inline]
    pub(crate) fn is_wide(self) -> bool {
        self.text & WIDE != 0
    }

    #[inline]
    pub(crate) fn is_tail(self) -> bool {
        self.text & TAIL != 0
    }

    #[inline]
    pub(crate) fn is_pad(self) -> bool {
        self.text & PAD != 0
    }

    #[inline]
    pub(crate) fn is_cluster(self) -> bool {
        self.text & CLUSTER != 0
    }

    /// Nothing was written here (padding counts as nothing).
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.text & !PAD == 0
    }

    /// The index of the cluster or the scalar value.
    #[inline]
    pub(crate) fn value(self) -> u32 {
        self.text & VALUE
    }

    /// The character, when it is a single one.
    #[inline]
    pub(crate) fn char(self) -> Option<char> {
        if self.is_cluster() || self.is_tail() || self.is_empty() {
            None
        } else {
            char::from_u32(self.value())
        }
    }
}
