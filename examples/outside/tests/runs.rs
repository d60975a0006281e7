//! The program of this crate runs to its end.

use std::process::Command;

#[test]
fn it_shows_the_answer_twice_and_leaves_a_recording() {
    let folder = std::env::temp_dir().join(format!("tapdeck-outside-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let ran = Command::new(env!("CARGO_BIN_EXE_outside")).current_dir(&folder).output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("answer 42") && folder.join("demo.ahr").exists(), "{said}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
