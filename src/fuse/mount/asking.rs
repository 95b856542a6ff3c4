//! Asks the daemon of a mount a question, as `socket` answers it.

use std::ffi::CString;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::formats::question::{Address, LONGEST_LINE, Line};
use crate::fuse::fs::SOCKET;
use crate::os::answering;
use crate::os::mounts::{Mounted, is_trusted};
use ibi::message;
use ibi::message::{Localize, Message};

/// The time that the daemon has for an attribute of the root.
const ANSWER: Duration = Duration::from_secs(3);
/// The time for which no line of an answer may come.
const SILENCE: Duration = Duration::from_secs(60);
/// The time for which a daemon may be busy with other commands.
const BUSY: Duration = Duration::from_secs(20);

/// The reason why a daemon has not answered.
#[derive(Debug)]
pub enum AskError {
    /// The mount names no socket: it is of an older version, or its root may not be read.
    NoSocket,
    /// The daemon cannot be reached, or not understood.
    Unheard(Error),
    /// The socket is that of another user.
    Impostor(u32),
    /// The daemon has answered with this reason.
    Refused(String),
}

impl From<Error> for AskError {
    fn from(error: Error) -> AskError {
        AskError::Unheard(error)
    }
}

impl Localize for AskError {
    fn message(&self) -> Message {
        match self {
            AskError::NoSocket => message!(
                "the daemon answers no commands: it is of an older version, or the root of the mount may not be read"
            ),
            AskError::Unheard(error) => message!("the daemon does not answer: {error}", error),
            AskError::Impostor(user) => {
                message!("user {user} answers in place of the daemon", user)
            }
            AskError::Refused(why) => message!("the daemon refuses: {why}", why),
        }
    }
}

/// The lines of an answer.
#[derive(Debug)]
pub struct Answer(BufReader<UnixStream>);

impl Answer {
    /// The next line; None after the last.
    ///
    /// # Errors
    /// The daemon ends the answer with a reason, or is gone.
    pub fn next_line(&mut self) -> Result<Option<Line>, AskError> {
        let line = read_line(&mut self.0)?;
        match line.word() {
            "done" => Ok(None),
            "failed" => Err(refused(&line)),
            _ => Ok(Some(line)),
        }
    }

    /// Calls `visit` with each line.
    ///
    /// # Errors
    /// Those of [`Answer::next_line`].
    pub fn each(mut self, mut visit: impl FnMut(Line)) -> Result<(), AskError> {
        while let Some(line) = self.next_line()? {
            visit(line);
        }
        Ok(())
    }

    /// Waits for lines without a limit from now on.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn wait(&mut self) -> Result<(), AskError> {
        Ok(self.0.get_ref().set_read_timeout(None)?)
    }

    /// Says that what the daemon waits for has ended.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn end(&mut self) -> Result<(), AskError> {
        Ok(self.0.get_mut().write_all(b"\n")?)
    }
}

fn refused(line: &Line) -> AskError {
    AskError::Refused(line.get("why").unwrap_or_default().to_owned())
}

fn read_line(from: &mut BufReader<UnixStream>) -> Result<Line, Error> {
    let mut text = String::new();
    from.take(LONGEST_LINE).read_line(&mut text)?;
    if text.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Line::parse(&text).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Asks the daemon of a mount. Its answer begins with the first line that it has sent.
///
/// # Errors
/// The daemon is not there, is another's, or does not answer in time.
pub fn ask(mounted: &Mounted, question: &Line) -> Result<(Option<Line>, Answer), AskError> {
    let address = address(mounted)?;
    let owner = mounted.user.filter(|user| is_trusted(*user));
    let text = question.to_question(&address.key);
    let until = Instant::now() + BUSY;
    loop {
        let asked = try_once(&address.name, owner, &text);
        let is_busy = match &asked {
            Ok((Some(line), _)) => line.word() == "busy",
            // A daemon that is busy has closed the connection before it has read the question.
            Err(AskError::Unheard(error)) => matches!(
                error.kind(),
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::WouldBlock
            ),
            _ => false,
        };
        if !is_busy || Instant::now() >= until {
            return match asked {
                Ok((Some(line), _)) if line.word() == "busy" => Err(AskError::Refused(
                    message!("too many at once; try again").to_string(),
                )),
                asked => asked,
            };
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The address in the root of a mount.
fn address(mounted: &Mounted) -> Result<Address, AskError> {
    let path = CString::new(mounted.mount_point.as_os_str().as_bytes());
    let path = path.map_err(|_| AskError::NoSocket)?;
    let read = |buffer: &mut [u8]| rustix::fs::getxattr(path.as_c_str(), SOCKET, buffer);
    let text = answering::within(ANSWER, read).ok_or(Error::from(ErrorKind::TimedOut))?;
    let text = text.map_err(|errno| match errno {
        Errno::NODATA | Errno::ACCESS | Errno::OPNOTSUPP => AskError::NoSocket,
        errno => AskError::Unheard(errno.into()),
    })?;
    let address = std::str::from_utf8(&text).ok().and_then(Address::parse);
    address.ok_or(AskError::NoSocket)
}

fn try_once(
    name: &str,
    owner: Option<u32>,
    question: &str,
) -> Result<(Option<Line>, Answer), AskError> {
    let stream = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    );
    let stream = stream.map_err(Error::from)?;
    sockopt::set_socket_timeout(&stream, Timeout::Send, Some(ANSWER)).map_err(Error::from)?;
    let place = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(Error::from)?;
    rustix::net::connect(&stream, &place).map_err(Error::from)?;
    // Anyone may listen under a name that is free.
    let peer = sockopt::socket_peercred(&stream).map_err(Error::from)?;
    let peer = peer.uid.as_raw();
    if owner != Some(peer) {
        return Err(AskError::Impostor(peer));
    }
    let mut stream = UnixStream::from(stream);
    stream.set_read_timeout(Some(SILENCE))?;
    let written = stream.write_all(question.as_bytes());
    let mut answer = Answer(BufReader::new(stream));
    // Why it was not written may be there to be read.
    match (answer.next_line(), written) {
        (Err(AskError::Unheard(_)), Err(error)) => Err(error.into()),
        (first, _) => Ok((first?, answer)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    /// A listener that sends a text to whoever connects.
    fn saying(name: &str, text: &'static str) {
        let name = SocketAddr::from_abstract_name(name).expect("a name");
        let listener = UnixListener::bind_addr(&name).expect("a listener");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a duplicate"));
            let _ = reader.read_line(&mut line);
            let _ = stream.write_all(text.as_bytes());
        });
    }

    #[test]
    fn a_socket_of_another_user_is_not_asked() {
        let own = rustix::process::geteuid().as_raw();
        for (owner, expected) in [(own, true), (own + 1, false)] {
            let name = format!("ibifs-test.{}.{owner}", std::process::id());
            saying(&name, "item a=b\ndone\n");
            match try_once(&name, Some(owner), "x\n") {
                Ok((Some(line), mut answer)) if expected => {
                    assert_eq!(line.get("a"), Some("b"));
                    assert!(matches!(answer.next_line(), Ok(None)));
                }
                Err(AskError::Impostor(user)) if !expected => assert_eq!(user, own),
                other => panic!("{owner}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let own = rustix::process::geteuid().as_raw();
        for (number, text) in ["", "no line", "\u{0}\n", "DONE\n"].into_iter().enumerate() {
            let name = format!("ibifs-test.{}.text{number}", std::process::id());
            saying(&name, text);
            let asked = try_once(&name, Some(own), "x\n");
            assert!(matches!(asked, Err(AskError::Unheard(_))), "{asked:?}");
        }
        let name = format!("ibifs-test.{}.why", std::process::id());
        saying(&name, "failed why=a%20b\n");
        match try_once(&name, Some(own), "x\n") {
            Err(AskError::Refused(why)) => assert_eq!(why, "a b"),
            other => panic!("{other:?}"),
        }
    }
}
