//! The texts of the resolver's pages, in two languages.

use crate::web::server::page;

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
        unknown_sentence: "No Archive knows an item with this identifier, or what is asked for of it.",
        copies_title: "Only copies",
        copies_sentence: "The original is asked for, and the Archives that answered hold copies only. \
                          Without ibiurl.requireditemstatus=Original the link leads to one of them.",
        silent_title: "Not found now",
        silent_sentence: "Not all Archives have answered, and none of those that have can say where the \
                          item is. It may be held by one of the others: please try again later.",
        without_answer: "Archives without an answer",
        deleted_title: "Removed",
        deleted_sentence: "The item with this identifier was removed. The identifier is never given to \
                           another.",
        suspects_title: "More than one original",
        suspects_sentence: "An original is held by one Archive only, but all of these say that they hold it. One of them is wrong; their administrators must decide which.",
        endless_title: "No end",
        endless_sentence: "The editions or relations of this item form a cycle, or are too long to be followed.",
        home_title: "Resolver",
        home_sentence: "Persistent links lead from here to the Archive that holds the item: put its \
                        identifier behind this address.",
        archives: "Archives",
    },
    &ResolverWords {
        tag: "pt",
        unknown_title: "Não encontrado",
        unknown_sentence: "Nenhum Arquivo conhece um item com este identificador, ou o que se pede dele.",
        copies_title: "Somente cópias",
        copies_sentence: "O original foi pedido, e os Arquivos que responderam hospedam somente cópias. \
                          Sem ibiurl.requireditemstatus=Original a URL leva a uma delas.",
        silent_title: "Não encontrado agora",
        silent_sentence: "Nem todos os Arquivos responderam, e nenhum dos que responderam sabe onde está \
                          o item. Um dos outros pode hospedá-lo: tente novamente mais tarde.",
        without_answer: "Arquivos sem resposta",
        deleted_title: "Removido",
        deleted_sentence: "O item com este identificador foi removido. O identificador nunca será dado a \
                           outro.",
        suspects_title: "Mais de um original",
        suspects_sentence: "Um original está em um único Arquivo, mas todos estes dizem hospedá-lo. Eles \
                            estão sob suspeita e uma investigação é necessária.",
        endless_title: "Sem fim",
        endless_sentence: "As edições ou relações deste item formam um círculo, ou levam longe demais.",
        home_title: "Resolvedor",
        home_sentence: "As URLs persistentes levam daqui ao Arquivo que hospeda o item: coloque o \
                        identificador dele depois deste endereço.",
        archives: "Arquivos",
    },
];
