//! The attach wire: a terminal that shows and drives a live session.
