//! The identity of this process, in words that no other process of any machine has.

use std::os::unix::fs::MetadataExt;

use crate::system_files;

/// A process, as another one can look it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The boot of the machine and the namespace of process numbers, in which the number means something.
    pub machine: String,
    /// Its number.
    pub pid: u32,
    /// The time at which it started, in ticks since the boot: numbers are used again.
    pub started: u64,
}

/// The name of this host, as uname(2) has it.
#[must_use]
pub fn host_name() -> String {
    let node = rustix::system::uname();
    node.nodename().to_string_lossy().into_owned()
}

/// The name of a user, or the number if the user has no name.
#[must_use]
pub fn user_name(uid: u32) -> String {
    let table = system_files::read("/etc/passwd").unwrap_or_default();
    let table = String::from_utf8_lossy(&table).into_owned();
    let name = table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| uid.to_string())
}

impl Process {
    /// This process.
    #[must_use]
    pub fn own() -> Process {
        let pid = std::process::id();
        Process {
            machine: machine(),
            pid,
            started: started(pid).unwrap_or_default(),
        }
    }

    /// Whether it is known to have ended. Nothing is known of the processes of other machines.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.machine == machine() && started(self.pid) != Some(self.started)
    }
}

/// The boot and the namespace; random(4), pid_namespaces(7).
fn machine() -> String {
    let boot = system_files::read_text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino());
    format!("{}-{space}", boot.trim())
}

/// The time at which a process started, proc(5); None if there is no such process, or only its status is left.
#[must_use]
pub fn started(pid: u32) -> Option<u64> {
    let stat = system_files::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in brackets, may have spaces.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 2..)?).ok()?;
    let mut fields = rest.split(' ');
    let is_dead = fields.next().is_none_or(|state| matches!(state, "Z" | "X"));
    let started = fields.nth(18)?.parse().ok();
    started.filter(|_| !is_dead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = Process::own();
        assert!(own.started > 0 && own.machine.len() > 36, "{own:?}");
        assert!(!own.has_ended());
        let before = Process {
            started: own.started - 1,
            ..own.clone()
        };
        assert!(before.has_ended());
        let elsewhere = Process {
            machine: "elsewhere".to_owned(),
            ..before
        };
        assert!(!elsewhere.has_ended());
        let mut child = std::process::Command::new("true").spawn().expect("it runs");
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while started(child.id()).is_some() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(started(child.id()), None, "its status is left");
        child.wait().expect("it ends");
        let gone = Process {
            pid: child.id(),
            ..own
        };
        assert!(gone.has_ended());
    }
}
