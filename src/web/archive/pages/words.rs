//! The texts of the pages, in two languages.

use crate::formats::citation::CitationLanguage;
use crate::formats::history::{EventKind, Told};
use crate::formats::item::State;
use crate::formats::metadata::Element;
use crate::http::server::page;

/// The texts in one language.
#[derive(Debug)]
pub(super) struct ArchiveWords {
    tag: &'static str,
    /// The decimal separator.
    pub(super) point: char,
    pub(super) rep: &'static str,
    pub(super) ibip: &'static str,
    pub(super) persistent: &'static str,
    pub(super) state: &'static str,
    states: [&'static str; 3],
    pub(super) language: &'static str,
    pub(super) identified: &'static str,
    pub(super) sealed: &'static str,
    pub(super) sealed_from: &'static str,
    pub(super) changed: &'static str,
    pub(super) removed: &'static str,
    pub(super) accesses: &'static str,
    pub(super) main_file: &'static str,
    pub(super) editions: &'static str,
    pub(super) newer_edition: &'static str,
    pub(super) damaged: &'static str,
    pub(super) this_edition: &'static str,
    pub(super) is_last_edition: &'static str,
    pub(super) translations: &'static str,
    pub(super) translation_of: &'static str,
    pub(super) more_translations: &'static str,
    pub(super) removed_relations: &'static str,
    pub(super) is_removed: &'static str,
    pub(super) is_withdrawn: &'static str,
    pub(super) claims: &'static str,
    pub(super) claims_sentence: &'static str,
    pub(super) history: &'static str,
    pub(super) told_by: &'static str,
    pub(super) all_events: &'static str,
    events: [(EventKind, &'static str); 25],
    pub(super) metadata: &'static str,
    pub(super) metadata_of: &'static str,
    pub(super) metadata_item: &'static str,
    pub(super) metadata_table: &'static str,
    pub(super) dublin_core: &'static str,
    pub(super) element: &'static str,
    pub(super) value: &'static str,
    elements: [&'static str; 15],
    pub(super) elsewhere: &'static str,
    pub(super) files: &'static str,
    pub(super) no_files: &'static str,
    pub(super) restricted_files: &'static str,
    pub(super) ask_for_files: &'static str,
    pub(super) withheld_title: &'static str,
    pub(super) withheld_until: &'static str,
    pub(super) hidden_files: &'static str,
    pub(super) more_files: &'static str,
    pub(super) all_files: &'static str,
    pub(super) zip: &'static str,
    pub(super) bag: &'static str,
    pub(super) next_files: &'static str,
    pub(super) name: &'static str,
    pub(super) size: &'static str,
    pub(super) back: &'static str,
    pub(super) removed_title: &'static str,
    pub(super) removed_sentence: &'static str,
    pub(super) withdrawn_title: &'static str,
    pub(super) withdrawn_sentence: &'static str,
    pub(super) withdrawn: &'static str,
    pub(super) citation: &'static str,
    pub(super) reason: &'static str,
    pub(super) unknown_title: &'static str,
    pub(super) unknown_sentence: &'static str,
    pub(super) home_title: &'static str,
    pub(super) home_sentence: &'static str,
    pub(super) address: &'static str,
    pub(super) service: &'static str,
    pub(super) items: &'static str,
    pub(super) latest: &'static str,
    pub(super) no_items: &'static str,
    pub(super) item: &'static str,
    /// The language of the words that a citation style adds.
    pub(super) of_citations: CitationLanguage,
    pub(super) how_to_cite: &'static str,
    pub(super) copy: &'static str,
    pub(super) copied: &'static str,
    pub(super) about: &'static str,
    pub(super) identity: &'static str,
    pub(super) search: &'static str,
    pub(super) search_title: &'static str,
    pub(super) search_help: &'static str,
    pub(super) none_found: &'static str,
    pub(super) next_page: &'static str,
    pub(super) browse: &'static str,
    pub(super) preview: &'static str,
    pub(super) show_here: &'static str,
    /// Before the name of a file.
    pub(super) first_page: &'static str,
    pub(super) only_beginning: &'static str,
    /// The names of the fields by which items are listed: creator, subject, year, type, language, collection.
    pub(super) fields: [&'static str; 6],
}

impl page::Words for ArchiveWords {
    fn tag(&self) -> &'static str {
        self.tag
    }
}

/// The available languages.
pub(super) static BOTH: [&ArchiveWords; 2] = [&ENGLISH, &PORTUGUESE];

impl ArchiveWords {
    pub(super) fn of_state(&self, state: State) -> &'static str {
        let [original, copy, deleted] = self.states;
        match state {
            State::Original => original,
            State::Copy => copy,
            State::Deleted => deleted,
        }
    }

    /// What has happened; the word for it, if that is of a later version.
    pub(super) fn of_event<'a>(&self, event: &'a Told) -> &'a str {
        let mut events = self.events.iter();
        let known = events.find(|(kind, _)| Some(*kind) == event.kind());
        known.map_or(event.event.as_str(), |(_, words)| words)
    }

    pub(super) fn of_element(&self, element: Element) -> &'static str {
        self.elements
            .get(element as usize)
            .copied()
            .unwrap_or(element.name())
    }

    /// A length in bytes, with a suitable unit.
    pub(super) fn bytes(&self, bytes: u64) -> String {
        const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
        if bytes < 1000 {
            return format!("{bytes} B");
        }
        let (mut tenths, mut unit) = (bytes / 100, 0);
        // 1000 of a unit is 1 of the next.
        while tenths >= 10_000 && unit + 1 < UNITS.len() {
            (tenths, unit) = (tenths / 1000, unit + 1);
        }
        let unit = UNITS.get(unit).copied().unwrap_or_default();
        format!("{}{}{} {unit}", tenths / 10, self.point, tenths % 10)
    }
}

static ENGLISH: ArchiveWords = ArchiveWords {
    tag: "en",
    point: '.',
    rep: "Name (rep)",
    ibip: "Name (IBIp)",
    persistent: "Persistent link",
    state: "State",
    states: ["Original", "Copy", "Removed"],
    language: "Language",
    identified: "Identified",
    sealed: "Sealed since",
    sealed_from: "Sealed from",
    changed: "Last changed",
    removed: "Removed",
    accesses: "Accesses",
    main_file: "Open the main file",
    editions: "Editions",
    damaged: "Damaged here, and not sent until it is mended:",
    newer_edition: "There is a newer edition:",
    this_edition: "This item",
    is_last_edition: "This is the last edition.",
    translations: "Translations",
    translation_of: "Translation of",
    more_translations: "There are more translations than are shown.",
    removed_relations: "Items that are not shown any more",
    is_removed: "removed",
    is_withdrawn: "withdrawn",
    claims: "Claimed by",
    claims_sentence: "These items declare a relation to this item; this item does not declare it.",
    history: "History",
    told_by: "told by",
    all_events: "All events",
    events: [
        (EventKind::Minted, "Identified"),
        (EventKind::Arrived, "Received"),
        (EventKind::Published, "Made public"),
        (EventKind::Changed, "Files changed"),
        (EventKind::Described, "Description changed"),
        (EventKind::Related, "Relations changed"),
        (EventKind::RightsChanged, "Access changed"),
        (EventKind::Embargoed, "Files withheld"),
        (EventKind::Sealed, "Sealed"),
        (EventKind::Unsealed, "Unsealed"),
        (EventKind::Withdrawn, "Withdrawn"),
        (EventKind::Removed, "Removed"),
        (EventKind::Restored, "Restored"),
        (EventKind::Transferred, "Transferred"),
        (EventKind::Reindexed, "Indexed again"),
        (EventKind::CopiedIn, "Copied from another Archive"),
        (EventKind::CopiedOut, "Copied to another Archive"),
        (EventKind::Claimed, "Original claimed"),
        (EventKind::Exported, "Exported"),
        (EventKind::Imported, "Imported"),
        (EventKind::Scrubbed, "Files checked"),
        (EventKind::Damaged, "Damage found"),
        (EventKind::Mended, "Repaired"),
        (EventKind::Audited, "Compared with a copy"),
        (EventKind::Differs, "Found to differ from a copy"),
    ],
    metadata: "Metadata",
    metadata_of: "Describes",
    metadata_item: "Item with the metadata",
    metadata_table: "Metadata as a table",
    dublin_core: "Dublin Core (XML)",
    element: "Element",
    value: "Value",
    elements: [
        "Title",
        "Creator",
        "Subject",
        "Description",
        "Publisher",
        "Contributor",
        "Date",
        "Type",
        "Format",
        "Identifier",
        "Source",
        "Language",
        "Relation",
        "Coverage",
        "Rights",
    ],
    elsewhere: "held elsewhere",
    files: "Files",
    no_files: "There are no public files.",
    restricted_files: "Access to the files of this item is restricted.",
    ask_for_files: "Write to",
    withheld_title: "The files are under embargo",
    withheld_until: "The files of this item are withheld until",
    hidden_files: "In hidden directories",
    more_files: "Not all files are shown here.",
    all_files: "List of all files",
    zip: "Whole item as a zip file",
    bag: "as a BagIt bag",
    next_files: "More files",
    name: "Name",
    size: "Size",
    back: "Back to the item",
    removed_title: "This item was removed",
    removed_sentence: "This Archive held the item, but no longer does. Its names will never be given to another item.",
    withdrawn_title: "This item was withdrawn",
    withdrawn_sentence: "This Archive keeps the item, and does not show it any more.",
    withdrawn: "Withdrawn",
    citation: "Citation",
    reason: "Reason",
    unknown_title: "Not found",
    unknown_sentence: "This Archive has no public item with this name:",
    home_title: "Digital Archive",
    home_sentence: "This Archive holds items: sets of files, each with a persistent name that is unique in the world.",
    address: "Address",
    service: "Archive service",
    items: "Items held",
    latest: "Latest items identified here",
    no_items: "None yet.",
    item: "Item",
    of_citations: CitationLanguage::English,
    how_to_cite: "How to cite",
    copy: "Copy",
    copied: "Copied",
    about: "About this item",
    identity: "Names and state",
    search: "Search",
    search_title: "Search the items",
    search_help: "Words, \u{201c}phrases\u{201d}, creator:name, year:2005-2009, -word, begin*",
    none_found: "No item has all of these words.",
    next_page: "More items",
    browse: "Browse by",
    preview: "Preview",
    show_here: "Show it here",
    first_page: "First page of",
    only_beginning: "Only the beginning is shown.",
    fields: [
        "Creator",
        "Subject",
        "Year",
        "Type",
        "Language",
        "Collection",
    ],
};

static PORTUGUESE: ArchiveWords = ArchiveWords {
    tag: "pt",
    point: ',',
    rep: "Nome (rep)",
    ibip: "Nome (IBIp)",
    persistent: "URL persistente",
    state: "Estado",
    states: ["Original", "Cópia", "Removido"],
    language: "Idioma",
    identified: "Identificado em",
    sealed: "Selado desde",
    sealed_from: "Selado a partir de",
    changed: "Última alteração",
    removed: "Removido em",
    accesses: "Acessos",
    main_file: "Abrir o arquivo principal",
    editions: "Edições",
    damaged: "Danificado aqui, e não enviado até ser consertado:",
    newer_edition: "Há uma edição mais nova:",
    this_edition: "Este item",
    is_last_edition: "Esta é a última edição.",
    translations: "Traduções",
    translation_of: "Tradução de",
    more_translations: "Há mais traduções do que as mostradas.",
    removed_relations: "Itens que não são mais mostrados",
    is_removed: "removido",
    is_withdrawn: "retirado",
    claims: "Afirmado por",
    claims_sentence: "Estes itens afirmam uma relação com este item; este item não a afirma.",
    history: "Histórico",
    told_by: "contado por",
    all_events: "Todos os eventos",
    events: [
        (EventKind::Minted, "Identificado"),
        (EventKind::Arrived, "Recebido"),
        (EventKind::Published, "Tornado público"),
        (EventKind::Changed, "Arquivos alterados"),
        (EventKind::Described, "Descrição alterada"),
        (EventKind::Related, "Relações alteradas"),
        (EventKind::RightsChanged, "Acesso alterado"),
        (EventKind::Embargoed, "Arquivos retidos"),
        (EventKind::Sealed, "Selado"),
        (EventKind::Unsealed, "Selo removido"),
        (EventKind::Withdrawn, "Retirado"),
        (EventKind::Removed, "Removido"),
        (EventKind::Restored, "Restaurado"),
        (EventKind::Transferred, "Transferido"),
        (EventKind::Reindexed, "Indexado de novo"),
        (EventKind::CopiedIn, "Copiado de outro Arquivo"),
        (EventKind::CopiedOut, "Copiado para outro Arquivo"),
        (EventKind::Claimed, "Original reivindicado"),
        (EventKind::Exported, "Exportado"),
        (EventKind::Imported, "Importado"),
        (EventKind::Scrubbed, "Arquivos verificados"),
        (EventKind::Damaged, "Dano encontrado"),
        (EventKind::Mended, "Reparado"),
        (EventKind::Audited, "Comparado com uma cópia"),
        (EventKind::Differs, "Encontrado diferente de uma cópia"),
    ],
    metadata: "Metadados",
    metadata_of: "Descreve",
    metadata_item: "Item com os metadados",
    metadata_table: "Metadados em tabela",
    dublin_core: "Dublin Core (XML)",
    element: "Elemento",
    value: "Valor",
    elements: [
        "Título",
        "Criador",
        "Assunto",
        "Descrição",
        "Editor",
        "Colaborador",
        "Data",
        "Tipo",
        "Formato",
        "Identificador",
        "Fonte",
        "Idioma",
        "Relação",
        "Cobertura",
        "Direitos",
    ],
    elsewhere: "hospedado em outro lugar",
    files: "Arquivos",
    no_files: "Não há arquivos públicos.",
    restricted_files: "O acesso aos arquivos deste item é restrito.",
    ask_for_files: "Escreva a",
    withheld_title: "Os arquivos estão sob embargo",
    withheld_until: "Os arquivos deste item ficam retidos até",
    hidden_files: "Em diretórios ocultos",
    more_files: "Nem todos os arquivos aparecem aqui.",
    all_files: "Lista de todos os arquivos",
    zip: "O item inteiro em um arquivo zip",
    bag: "como um pacote BagIt",
    next_files: "Mais arquivos",
    name: "Nome",
    size: "Tamanho",
    back: "Voltar ao item",
    removed_title: "Este item foi removido",
    removed_sentence: "Este Arquivo hospedava o item, mas não o hospeda mais. Seus nomes nunca serão dados a outro item.",
    withdrawn_title: "Este item foi retirado",
    withdrawn_sentence: "Este Arquivo conserva o item, mas não o mostra mais.",
    withdrawn: "Retirado em",
    citation: "Citação",
    reason: "Motivo",
    unknown_title: "Não encontrado",
    unknown_sentence: "Este Arquivo não tem nenhum item público com este nome:",
    home_title: "Arquivo digital",
    home_sentence: "Este Arquivo hospeda itens: conjuntos de arquivos, cada um com um nome persistente e único no mundo.",
    address: "Endereço",
    service: "Serviço de Arquivo",
    items: "Itens hospedados",
    latest: "Últimos itens identificados aqui",
    no_items: "Nenhum ainda.",
    item: "Item",
    of_citations: CitationLanguage::Portuguese,
    how_to_cite: "Como citar",
    copy: "Copiar",
    copied: "Copiado",
    about: "Sobre este item",
    identity: "Nomes e estado",
    search: "Buscar",
    search_title: "Buscar itens",
    search_help: "Palavras, \u{201c}frases\u{201d}, creator:nome, year:2005-2009, -palavra, início*",
    none_found: "Nenhum item tem todas estas palavras.",
    next_page: "Mais itens",
    browse: "Listar por",
    preview: "Pré-visualização",
    show_here: "Mostrar aqui",
    first_page: "Primeira página de",
    only_beginning: "Só o início é mostrado.",
    fields: ["Criador", "Assunto", "Ano", "Tipo", "Língua", "Coleção"],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_words() {
        let cases = [
            (0, "0 B", "0 B"),
            (999, "999 B", "999 B"),
            (1000, "1.0 kB", "1,0 kB"),
            (12_345, "12.3 kB", "12,3 kB"),
            (999_999, "999.9 kB", "999,9 kB"),
            (1_000_000, "1.0 MB", "1,0 MB"),
            (u64::MAX, "18.4 EB", "18,4 EB"),
        ];
        for (bytes, english, portuguese) in cases {
            assert_eq!(ENGLISH.bytes(bytes), english);
            assert_eq!(PORTUGUESE.bytes(bytes), portuguese);
        }
    }

    #[test]
    fn states_and_elements_have_words() {
        assert_eq!(PORTUGUESE.of_state(State::Copy), "Cópia");
        assert_eq!(PORTUGUESE.of_element(Element::Rights), "Direitos");
        for element in Element::ALL {
            assert_eq!(ENGLISH.of_element(element).to_lowercase(), element.name());
        }
    }
}
