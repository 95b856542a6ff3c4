//! The verbs of the protocol, and the parameters of each.

/// The verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Registers an actor.
    RegisterActor,
    /// Changes the password of an actor.
    ChangePassword,
    /// Changes the e-mail address of an actor.
    ChangeEMailAddress,
    /// Registers a document of an actor, or changes to it.
    RegisterDocument,
    /// Transfers a document to another actor.
    ChangeActor,
    /// Deletes the registration of a document.
    DeleteDocumentRegistration,
    /// Returns everything that is registered of a document.
    DisplayIDRegistration,
}

impl Verb {
    /// All verbs, in the order of the protocol.
    pub const ALL: [Verb; 7] = [
        Verb::RegisterActor,
        Verb::ChangePassword,
        Verb::ChangeEMailAddress,
        Verb::RegisterDocument,
        Verb::ChangeActor,
        Verb::DeleteDocumentRegistration,
        Verb::DisplayIDRegistration,
    ];

    /// The name of the verb.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verb::RegisterActor => "RegisterActor",
            Verb::ChangePassword => "ChangePassword",
            Verb::ChangeEMailAddress => "ChangeEMailAddress",
            Verb::RegisterDocument => "RegisterDocument",
            Verb::ChangeActor => "ChangeActor",
            Verb::DeleteDocumentRegistration => "DeleteDocumentRegistration",
            Verb::DisplayIDRegistration => "DisplayIDRegistration",
        }
    }

    /// Its parameters that occur at most once, without `verb`.
    #[must_use]
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Verb::RegisterActor => &[
                "computerName",
                "domainName",
                "port",
                "eMailAddress",
                "password",
            ],
            Verb::ChangePassword => &["actorID", "password", "newPassword"],
            Verb::ChangeEMailAddress => &["actorID", "password", "newEmailAddress"],
            Verb::RegisterDocument => &[
                "actorID",
                "password",
                "documentID",
                "originalDocument",
                "documentURL",
                "documentLastUpdate",
                "fingerprint",
                "previousEditionURL",
                "nextEditionURL",
            ],
            Verb::ChangeActor => &["actorID", "password", "documentID", "newActorID"],
            Verb::DeleteDocumentRegistration | Verb::DisplayIDRegistration => {
                &["actorID", "password", "documentID"]
            }
        }
    }

    /// Its parameters that form a group, which may be repeated.
    #[must_use]
    pub fn group(self) -> &'static [&'static str] {
        match self {
            Verb::RegisterDocument => &[
                "metadataURL",
                "metadataLastUpdate",
                "metadataFormat",
                "metadataLanguage",
            ],
            _ => &[],
        }
    }
}
