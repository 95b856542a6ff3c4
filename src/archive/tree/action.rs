//! Operations on files and directories, as error messages name them.

use ibi::message;
use ibi::message::{Localize, Message};

/// The operation that failed on a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To ask for room in.
    AskForRoomIn,
    /// To change the mode of.
    ChangeMode,
    /// To clear.
    Clear,
    /// To copy the attributes of.
    CopyAttributes,
    /// To set the time of.
    SetTime,
    /// To set the attributes of.
    SetAttributes,
    /// To empty.
    Empty,
    /// To link.
    Link,
    /// To list.
    List,
    /// To lock.
    Lock,
    /// To make.
    Make,
    /// To make the store.
    MakeStore,
    /// To mark.
    Mark,
    /// To move.
    Move,
    /// To open.
    Open,
    /// To open the store.
    OpenStore,
    /// To read.
    Read,
    /// To remove.
    Remove,
    /// To remove the note of.
    RemoveNote,
    /// To remove the sidecar of.
    RemoveSidecar,
    /// To rename.
    Rename,
    /// To start a reader of.
    StartReader,
    /// To sync.
    Sync,
    /// To take back.
    TakeBack,
    /// To use a store whose path is too long.
    UseLongPath,
    /// To unmark.
    Unmark,
    /// To use.
    Use,
    /// To write.
    Write,
}

impl Localize for Action {
    fn message(&self) -> Message {
        match self {
            Action::AskForRoomIn => message!("ask for room in"),
            Action::ChangeMode => message!("change the mode of"),
            Action::Clear => message!("clear"),
            Action::CopyAttributes => message!("copy the attributes of"),
            Action::SetTime => message!("set the time of"),
            Action::SetAttributes => message!("set the attributes of"),
            Action::Empty => message!("empty"),
            Action::Link => message!("link"),
            Action::List => message!("list"),
            Action::Lock => message!("lock"),
            Action::Make => message!("make"),
            Action::MakeStore => message!("make the store"),
            Action::Mark => message!("mark"),
            Action::Move => message!("move"),
            Action::Open => message!("open"),
            Action::OpenStore => message!("open the store"),
            Action::Read => message!("read"),
            Action::Remove => message!("remove"),
            Action::RemoveNote => message!("remove the note of"),
            Action::RemoveSidecar => message!("remove the sidecar of"),
            Action::Rename => message!("rename"),
            Action::StartReader => message!("start a reader of"),
            Action::Sync => message!("sync"),
            Action::TakeBack => message!("undo the placement of"),
            Action::UseLongPath => {
                message!("use the store, whose full path must be shorter than 4,096 bytes,")
            }
            Action::Unmark => message!("unmark"),
            Action::Use => message!("use"),
            Action::Write => message!("write"),
        }
    }
}
