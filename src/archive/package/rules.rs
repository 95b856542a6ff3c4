//! The rules of OCFL, versions 1.0 and 1.1, by their codes: <https://ocfl.io/1.1/spec/validation-codes.html>. No input or
//! output.

use crate::archive::finding::{Severity, findings};
use ibi::display_message;
use ibi::message;
use ibi::message::{Localize, Message};

findings! {
    /// A rule of what an object must be, or should be.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rule {
        E001 "E001" Error "OCFL does not know this in the object's directory"
        E003 "E003" Error "the object has not exactly one declaration of its version, '0=ocfl_object_1.0' or '0=ocfl_object_1.1'"
        E007 "E007" Error "its text is not that of its name"
        E008 "E008" Error "the object has no version"
        E009 "E009" Error "the first version is not 1"
        E010 "E010" Error "a version is missing"
        E011 "E011" Error "some versions have names with zeros in front, or of another length, and others have not"
        E015 "E015" Error "a version has it outside of its content directory"
        E017 "E017" Error "its contentDirectory is no name without '/'"
        E018 "E018" Error "its contentDirectory is '.' or '..'"
        E019 "E019" Error "its contentDirectory is not that of the first version"
        E023 "E023" Error "the manifest does not list this file"
        E024 "E024" Error "the directory is empty"
        E025 "E025" Error "its digestAlgorithm is neither sha512 nor sha256"
        E033 "E033" Error "it is not a JSON object, or has a key twice"
        E036 "E036" Error "it lacks one of id, type, digestAlgorithm and head"
        E037 "E037" Error "its id is empty, no text, or that of another object"
        E038 "E038" Error "its type is not the inventory of the declared version of OCFL"
        E040 "E040" Error "its head is not the last version"
        E041 "E041" Error "it has no manifest that is a JSON object"
        E043 "E043" Error "it has no versions"
        E044 "E044" Error "its versions are not a JSON object"
        E046 "E046" Error "its versions are not those of the object's directories"
        E047 "E047" Error "a version is not a JSON object"
        E048 "E048" Error "a version has no created or no state"
        E049 "E049" Error "a version's created is not a date and time to the second with a time zone"
        E050 "E050" Error "a state has no JSON object, or a digest that is not in the manifest"
        E051 "E051" Error "a digest in a state has no list of paths"
        E052 "E052" Error "a path of a state has a part that is empty, '.' or '..'"
        E053 "E053" Error "a path of a state begins or ends with '/'"
        E054 "E054" Error "a version's user is not a JSON object with a name"
        E057 "E057" Error "its fixity has no lists of paths by digest"
        E058 "E058" Error "the file with the inventory's digest is missing"
        E060 "E060" Error "it has another digest than the file beside it says"
        E061 "E061" Error "it is not a digest and 'inventory.json'"
        E063 "E063" Error "the object has no inventory"
        E064 "E064" Error "the last version has another inventory than the object"
        E066 "E066" Error "the inventories contradict each other in the state of a version"
        E067 "E067" Error "extensions has something other than directories"
        E090 "E090" Error "it is a link, or neither a file nor a directory"
        E092 "E092" Error "it is missing, or its digest is not that of the manifest"
        E093 "E093" Error "it is missing, or its digest is not that of the fixity"
        E094 "E094" Error "a version's message is not a text"
        E095 "E095" Error "a state has a path twice, or both as a file and as a directory"
        E096 "E096" Error "the manifest has a digest twice"
        E097 "E097" Error "the fixity has a digest twice"
        E099 "E099" Error "a path of the manifest or the fixity has a part that is empty, '.' or '..'"
        E100 "E100" Error "a path of the manifest or the fixity begins or ends with '/'"
        E101 "E101" Error "the manifest has a path twice, or both as a file and as a directory"
        E102 "E102" Error "it has a key that OCFL does not know"
        E103 "E103" Error "a version is of an earlier OCFL than the one before"
        E107 "E107" Error "the manifest has a digest that no version uses"
        E111 "E111" Error "its fixity is not a JSON object"
        W001 "W001" Warning "versions have names with zeros in front"
        W002 "W002" Warning "a version has another directory than its content directory"
        W003 "W003" Warning "the content directory has no files"
        W004 "W004" Warning "its digestAlgorithm is not sha512"
        W005 "W005" Warning "its id is not a URI"
        W007 "W007" Warning "a version has no message or no user"
        W008 "W008" Warning "a version's user has no address"
        W009 "W009" Warning "the address of a version's user is not a URI"
        W010 "W010" Warning "a version has no inventory"
        W011 "W011" Warning "the inventories differ in created, message or user of a version"
        W013 "W013" Warning "the extension is not registered"
    }
}

/// A rule that a file of an object breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The rule.
    pub rule: Rule,
    /// The file in the object.
    pub path: String,
    /// The part of it: a version, a path or a digest.
    pub detail: Option<String>,
}

impl Fault {
    /// Whether the object is not valid for it.
    pub fn is_error(&self) -> bool {
        self.rule.severity() == Severity::Error
    }
}

impl Localize for Fault {
    fn message(&self) -> Message {
        let (code, path, rule) = (self.rule.word(), &self.path, self.rule);
        match &self.detail {
            Some(detail) => message!(
                "{code}, '{path}': {rule}: {detail}",
                code,
                path,
                rule,
                detail
            ),
            None => message!("{code}, '{path}': {rule}", code, path, rule),
        }
    }
}

display_message!(Fault);
