//! Why a service does not start.

use std::net::SocketAddr;

use crate::command::exit::{Exit, Failure};
use ibi::message;

pub(super) fn cannot_give_up(error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        message!(
            "root's rights cannot be given up: {error}; add CAP_SETUID and CAP_SETGID to the container or service, or run it as the user who owns the store",
            error
        ),
    )
}

pub(super) fn cannot_listen(listen: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        message!(
            "cannot listen at {listen}: {error}; choose another with --listen",
            listen,
            error
        ),
    )
}
