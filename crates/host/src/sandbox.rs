//! A sandbox for a process that parses files from strangers: it reads the files that it was started
//! for and does nothing else. A fault in a parser then reaches neither other files, nor the
//! network, nor other processes.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// System calls that a parser has no use for. Each would reach out of its process.
const REFUSED: [libc::c_long; 25] = [
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_send_signal,
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
];

/// What the sandbox allows.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    /// Files and folders that can be read. Those that are not there are left out.
    pub readable: Vec<PathBuf>,
}

impl Sandbox {
    /// Shuts the calling thread in, and the threads that it starts. What the kernel cannot enforce
    /// is left out: it is the outer wall, and the parsers are the inner one.
    ///
    /// # Errors
    /// When the kernel has the means and refuses them.
    pub fn enter(&self) -> io::Result<()> {
        let reading = AccessFs::ReadFile | AccessFs::ReadDir;
        let mut rules = Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V6))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V6)))
            .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        for path in &self.readable {
            let Ok(place) = PathFd::new(path) else { continue };
            let access = if path.is_dir() { reading } else { AccessFs::ReadFile.into() };
            rules = rules.add_rule(PathBeneath::new(place, access)).map_err(io::Error::other)?;
        }
        rules.restrict_self().map_err(io::Error::other)?;
        seccompiler::apply_filter(&filter()?).map_err(io::Error::other)
    }
}

/// Limits the memory that the process can allocate, and forbids core files.
///
/// # Errors
/// When the system refuses.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    let at_most = |n| Rlimit { current: Some(n), maximum: Some(n) };
    setrlimit(Resource::Data, at_most(bytes))?;
    Ok(setrlimit(Resource::Core, at_most(0))?)
}

fn filter() -> io::Result<BpfProgram> {
    let rules: BTreeMap<i64, Vec<_>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{TcpListener, UdpSocket};
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it must not start")]
    fn only_what_was_allowed_can_be_read_and_nothing_else_done() {
        let folder = tempfile::tempdir().expect("a folder");
        let (given, other, inner) =
            (folder.path().join("given"), folder.path().join("other"), folder.path().join("in"));
        fs::create_dir(&inner).expect("a folder");
        for file in [&given, &other, &inner.join("file")] {
            fs::write(file, "text").expect("written");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        // A sandbox is a thread's, and the threads' that it starts.
        let inside = thread::spawn(move || {
            let gone = folder.path().join("gone");
            Sandbox { readable: vec![given.clone(), inner.clone(), gone] }.enter().expect("shut in");
            thread::spawn(move || {
                assert_eq!(fs::read_to_string(&given).expect("read"), "text");
                assert_eq!(fs::read_to_string(inner.join("file")).expect("read"), "text");
                assert_eq!(fs::read_dir(&inner).expect("listed").count(), 1);
                let refused = [
                    fs::read(&other).map(drop),
                    fs::read_dir(folder.path()).map(drop),
                    fs::write(&given, "changed"),
                    fs::remove_file(&given),
                    fs::write(inner.join("new"), "new"),
                    fs::read("/etc/passwd").map(drop),
                    std::net::TcpStream::connect(address).map(drop),
                    UdpSocket::bind("127.0.0.1:0").map(drop),
                    Command::new("/bin/true").status().map(drop),
                ];
                for (n, refused) in refused.into_iter().enumerate() {
                    let refused = refused.expect_err("nothing else");
                    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{n}: {refused}");
                }
                assert_eq!(fs::read_to_string(&given).expect("read"), "text");
            })
            .join()
        });
        inside.join().expect("a thread").expect("a thread within");
    }
}
