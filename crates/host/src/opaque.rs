//! `Debug` for types whose insides say nothing to a reader: their name alone.

macro_rules! opaque_debug {
    ($($type:ident),+) => {
        $(impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        })+
    };
}

pub(crate) use opaque_debug;
