//! The operating system: backends, driver loop, clock, outer terminal, recorder.
