//! Snapshots: a tool announces a snapshot of the file system to the recorder.
