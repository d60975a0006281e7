//! The table of this machine's processes. Callers that need it at the same time share one reading.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::processes::{Process, all};

/// All processes by the session that they belong to.
pub type Sessions = BTreeMap<i32, Vec<(u32, Process)>>;

/// How many readings were begun and done, and what the last one saw.
struct Table {
    begun: u64,
    done: u64,
    under_way: bool,
    seen: Option<Arc<Sessions>>,
}

static TABLE: (Mutex<Table>, Condvar) =
    (Mutex::new(Table { begun: 0, done: 0, under_way: false, seen: None }), Condvar::new());

/// The processes of all sessions, as they were at some moment after this was called. Callers at the
/// same time share one reading: a thousand sessions that end together would otherwise read
/// thousands of processes a thousand times.
pub fn by_session() -> Arc<Sessions> {
    let (table, done) = &TABLE;
    let mut state = table.lock().unwrap_or_else(PoisonError::into_inner);
    // What is under way may have passed by already what the caller has to see.
    let wanted = state.begun + 1;
    while state.done < wanted {
        if state.under_way {
            state = done.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        state.under_way = true;
        state.begun += 1;
        drop(state);
        let mut seen = Sessions::new();
        for pid in all() {
            if let Some(process) = Process::find(pid) {
                seen.entry(process.session).or_default().push((pid, process));
            }
        }
        state = table.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way = false;
        state.done = state.begun;
        state.seen = Some(Arc::new(seen));
        done.notify_all();
    }
    state.seen.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any process will do")]
    fn every_reading_sees_what_was_there_before() {
        let look = || {
            let mut child = std::process::Command::new("sleep").arg("300").spawn().expect("it starts");
            let session = Process::find(child.id()).expect("it is there").session;
            let there =
                by_session().get(&session).is_some_and(|all| all.iter().any(|(p, _)| *p == child.id()));
            child.kill().and_then(|()| child.wait()).expect("ended");
            let gone = by_session().get(&session).is_none_or(|all| all.iter().all(|(p, _)| *p != child.id()));
            (there, gone)
        };
        std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..8).map(|_| scope.spawn(|| (0..20).map(|_| look()).collect::<Vec<_>>())).collect();
            for looked in all {
                assert!(looked.join().expect("no panic").iter().all(|(there, gone)| *there && *gone));
            }
        });
    }
}
