//! The process at the other end of a socket, as the kernel has recorded it when it connected: later its number may be that of
//! another process.

use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::thread::CapabilitySet;

use super::powers::Powers;
use super::{Caller, process};

/// The most supplementary groups of a process, see setgroups(2).
const MOST_GROUPS: usize = 65_536;

/// A process that has connected to a socket, with its groups.
#[derive(Debug)]
pub struct Peer {
    caller: Caller,
    powers: Powers,
}

impl Peer {
    /// Returns who has connected.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn of(stream: &UnixStream) -> std::io::Result<Peer> {
        let found = sockopt::socket_peercred(stream)?;
        let caller = Caller {
            uid: found.uid.as_raw(),
            gid: found.gid.as_raw(),
            pid: found.pid.as_raw_nonzero().get().unsigned_abs(),
        };
        // Capabilities are those of the process with the number, which counts for root alone.
        let capabilities = match caller.uid {
            0 => Powers::of(caller.pid).capabilities,
            _ => CapabilitySet::empty(),
        };
        let groups = groups(stream)?;
        Ok(Peer {
            caller,
            powers: Powers {
                groups,
                capabilities,
            },
        })
    }

    /// The process.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns whether this process may tell it from itself: it acts as other users, or the user is its own.
    #[must_use]
    pub fn is_told_apart(&self) -> bool {
        process::acts_as_others() || self.caller.uid == rustix::process::geteuid().as_raw()
    }

    /// Runs a read with the credentials of the peer; it is not run where this thread could not take them.
    pub fn read(&self, read: &mut dyn FnMut()) {
        if !self.caller.is_other() {
            return read();
        }
        let ran = self.caller.act_with(&self.powers, || {
            read();
            Ok::<(), Errno>(())
        });
        if let Err(errno) = ran {
            log::error!("nothing is read as user {}: {errno}", self.caller.uid);
        }
    }
}

/// The supplementary groups of the process at the other end.
fn groups(stream: &UnixStream) -> std::io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; 64];
    loop {
        let mut length = libc::socklen_t::try_from(size_of_val(&groups[..]))
            .map_err(|_| Error::from(ErrorKind::InvalidData))?;
        // SAFETY: the buffer has as many bytes as the length says, and the kernel writes at most these.
        let done = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let count = usize::try_from(length).unwrap_or_default() / size_of::<u32>();
        if done == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = Error::last_os_error();
        if Errno::from_io_error(&error) != Some(Errno::RANGE)
            || count <= groups.len()
            || count > MOST_GROUPS
        {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let peer = Peer::of(&one).expect("a peer");
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(
            (peer.caller.uid, peer.caller.pid),
            (own, std::process::id())
        );
        let groups = rustix::process::getgroups().expect("groups");
        let groups: Vec<u32> = groups.into_iter().map(|group| group.as_raw()).collect();
        assert_eq!(peer.powers.groups, groups);
        assert!(peer.is_told_apart());
        let mut was_read = false;
        peer.read(&mut || was_read = true);
        assert!(was_read);
    }
}
