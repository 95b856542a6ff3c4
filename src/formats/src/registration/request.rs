//! A request: a verb with its parameters.

use super::parameters::Parameters;
use super::{Credentials, Document, Email, Password, Provider, RequestError, Verb};
use crate::query::FormFields;
use ibi::Ibi;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationRequest {
    /// Registers an actor.
    RegisterActor {
        /// The host and port of the actor.
        provider: Provider,
        /// The address of the person responsible.
        email: Email,
        /// The password of later requests.
        password: Password,
    },
    /// Changes the password of an actor.
    ChangePassword(Credentials, Password),
    /// Changes the e-mail address of an actor.
    ChangeEMailAddress(Credentials, Email),
    /// Registers a document under an identifier of the actor, or under a new one.
    RegisterDocument(Credentials, Option<Ibi>, Box<Document>),
    /// Transfers a document to another actor.
    ChangeActor {
        /// The actor that has it.
        from: Credentials,
        /// The document.
        document: Ibi,
        /// The actor that receives it.
        to: Ibi,
    },
    /// Deletes the registration of a document.
    DeleteDocumentRegistration(Credentials, Ibi),
    /// Returns everything that is registered of a document.
    DisplayIDRegistration(Credentials, Ibi),
}

impl RegistrationRequest {
    /// Parses the parameters of a verb.
    ///
    /// # Errors
    /// A parameter that is missing, unknown, repeated, too long or not of its form.
    pub fn of(verb: Verb, fields: &FormFields) -> Result<RegistrationRequest, RequestError> {
        let parameters = Parameters::of(verb, fields)?;
        let credentials = || parameters.credentials();
        let document = || parameters.ibi("documentID");
        Ok(match verb {
            Verb::RegisterActor => RegistrationRequest::RegisterActor {
                provider: Provider::new(
                    parameters.required("computerName")?,
                    parameters.required("domainName")?,
                    parameters.required("port")?,
                )?,
                email: Email::parse("eMailAddress", parameters.required("eMailAddress")?)?,
                password: parameters.password("password")?,
            },
            Verb::ChangePassword => RegistrationRequest::ChangePassword(
                credentials()?,
                parameters.password("newPassword")?,
            ),
            Verb::ChangeEMailAddress => {
                let email = parameters.required("newEmailAddress")?;
                RegistrationRequest::ChangeEMailAddress(
                    credentials()?,
                    Email::parse("newEmailAddress", email)?,
                )
            }
            Verb::RegisterDocument => {
                let id = match parameters.get("documentID") {
                    Some(_) => Some(document()?),
                    None => None,
                };
                let described = Document::of(&parameters)?;
                RegistrationRequest::RegisterDocument(credentials()?, id, Box::new(described))
            }
            Verb::ChangeActor => RegistrationRequest::ChangeActor {
                from: credentials()?,
                document: document()?,
                to: parameters.ibi("newActorID")?,
            },
            Verb::DeleteDocumentRegistration => {
                RegistrationRequest::DeleteDocumentRegistration(credentials()?, document()?)
            }
            Verb::DisplayIDRegistration => {
                RegistrationRequest::DisplayIDRegistration(credentials()?, document()?)
            }
        })
    }
}

impl Verb {
    /// Parses the name of a verb.
    ///
    /// # Errors
    /// The name is not one of the seven.
    pub fn parse(name: &str) -> Result<Verb, RequestError> {
        let found = Verb::ALL.into_iter().find(|verb| verb.name() == name);
        found.ok_or_else(|| RequestError::UnknownVerb(name.to_owned()))
    }
}

/// The verb of a request.
///
/// # Errors
/// The verb is missing, occurs more than once, or is not one of the seven.
pub fn verb_of(fields: &FormFields) -> Result<Verb, RequestError> {
    let mut verbs = fields.iter().filter(|(name, _)| *name == "verb");
    match (verbs.next(), verbs.next()) {
        (Some((_, name)), None) if !name.is_empty() => Verb::parse(name),
        (Some(_), Some(_)) => Err(RequestError::Twice("verb")),
        _ => Err(RequestError::NoVerb),
    }
}
