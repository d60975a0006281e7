//! Run, record, replay, share and test terminal programs.
