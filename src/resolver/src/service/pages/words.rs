//! The texts of the resolver's pages, in two languages.

use ibifs_http::server::page;

/// The texts in one language.
#[derive(Debug)]
pub(super) struct ResolverWords {
    tag: &'static str,
    pub(super) unknown_title: &'static str,
    pub(super) unknown_sentence: &'static str,
    pub(super) copies_title: &'static str,
    pub(super) copies_sentence: &'static str,
    pub(super) silent_title: &'static str,
    pub(super) silent_sentence: &'static str,
    pub(super) without_answer: &'static str,
    pub(super) deleted_title: &'static str,
    pub(super) deleted_sentence: &'static str,
    pub(super) suspects_title: &'static str,
    pub(super) suspects_sentence: &'static str,
    pub(super) endless_title: &'static str,
    pub(super) endless_sentence: &'static str,
    pub(super) home_title: &'static str,
    pub(super) home_sentence: &'static str,
    pub(super) archives: &'static str,
}

impl page::Words for ResolverWords {
    fn tag(&self) -> &'static str {
        self.tag
    }
}

/// The available languages.
pub(super) static BOTH: [&ResolverWords; 2] = [
    &ResolverWords {
        tag: "en",
        unknown_title: "Not found",
        unknown_sentence: "No Archive has an item with this identifier, or the part of it that was requested.",
        copies_title: "Only copies",
        copies_sentence: "The original was requested, but the Archives that answered hold only copies. \
                          Without ibiurl.requireditemstatus=Original the link leads to a copy.",
        silent_title: "Not found now",
        silent_sentence: "Some Archives did not answer, and the others do not know where the item is. \
                          Please try again later.",
        without_answer: "Archives without an answer",
        deleted_title: "Removed",
        deleted_sentence: "The item with this identifier was removed. The identifier will never be given \
                           to another item.",
        suspects_title: "More than one original",
        suspects_sentence: "Only one Archive can hold the original, but each of these says that it does. \
                            Their administrators must find out which one is right.",
        endless_title: "No end",
        endless_sentence: "The editions or relations of this item form a cycle, or a chain that is too long \
                           to follow.",
        home_title: "Resolver",
        home_sentence: "This service leads persistent links to the Archive that holds the item. Add the \
                        identifier of an item to this address.",
        archives: "Archives",
    },
    &ResolverWords {
        tag: "pt",
        unknown_title: "Não encontrado",
        unknown_sentence: "Nenhum Arquivo tem um item com este identificador, ou a parte dele que foi pedida.",
        copies_title: "Somente cópias",
        copies_sentence: "O original foi pedido, mas os Arquivos que responderam hospedam somente cópias. \
                          Sem ibiurl.requireditemstatus=Original a URL leva a uma cópia.",
        silent_title: "Não encontrado agora",
        silent_sentence: "Alguns Arquivos não responderam, e os outros não sabem onde está o item. \
                          Tente novamente mais tarde.",
        without_answer: "Arquivos sem resposta",
        deleted_title: "Removido",
        deleted_sentence: "O item com este identificador foi removido. O identificador nunca será dado a \
                           outro item.",
        suspects_title: "Mais de um original",
        suspects_sentence: "Somente um Arquivo pode hospedar o original, mas cada um destes diz que o \
                            hospeda. Seus administradores precisam descobrir qual deles está certo.",
        endless_title: "Sem fim",
        endless_sentence: "As edições ou relações deste item formam um ciclo, ou uma cadeia longa demais \
                           para ser seguida.",
        home_title: "Resolvedor",
        home_sentence: "Este serviço leva as URLs persistentes ao Arquivo que hospeda o item. Acrescente \
                        o identificador de um item a este endereço.",
        archives: "Arquivos",
    },
];
