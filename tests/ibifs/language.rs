//! The messages of the command in Portuguese: all of them, where the locale says so, and nowhere else.

mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap::builder::StyledStr;
use ibi::message::Message;
use ibifs::command::cli::{Cli, MountHelper};
use ibifs::command::language::{Catalogue, PT_BR};
use ibifs::outside::archive::CheckCode;

use crate::support::TestEnv;
use sources::Template;

/// An entry of the catalogue.
struct Entry {
    context: String,
    text: String,
    plural: Option<String>,
    translations: Vec<String>,
    /// Whether the text comes from elsewhere than the sources.
    is_foreign: bool,
}

fn entries() -> Vec<Entry> {
    let catalogue = polib::po_file::parse_from_reader(PT_BR.as_bytes()).expect("a PO file");
    let entries = catalogue.messages().map(|message| Entry {
        context: message.msgctxt().unwrap_or_default().to_owned(),
        text: message.msgid().to_owned(),
        plural: message.msgid_plural().ok().map(str::to_owned),
        translations: match message.msgstr_plural() {
            Ok(forms) => forms.clone(),
            Err(_) => vec![message.msgstr().expect("a msgstr").to_owned()],
        },
        is_foreign: message.extracted_comments().starts_with("elsewhere: "),
    });
    entries.collect()
}

/// The parts of the lines of a longer text between wider gaps, but for commands and numbers.
fn columns(text: &str) -> Vec<String> {
    let columns = text
        .lines()
        .flat_map(|line| line.split("  "))
        .map(str::trim);
    let is_text = |column: &&str| {
        let is_command = column.starts_with("ibifs ") || column.starts_with("source ");
        !is_command && column.contains(char::is_alphabetic)
    };
    columns.filter(is_text).map(str::to_owned).collect()
}

/// The texts of clap that its help shows, English, of a command and all below it.
fn help_texts(command: &clap::Command, found: &mut BTreeSet<String>) {
    let texts = [
        command.get_about(),
        command.get_long_about(),
        command.get_before_help(),
        command.get_after_help(),
        command.get_before_long_help(),
        command.get_after_long_help(),
    ];
    let of_arguments = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .flat_map(|argument| [argument.get_help(), argument.get_long_help()]);
    let all = texts.into_iter().chain(of_arguments).flatten();
    for text in all.map(StyledStr::to_string) {
        if text.contains('\n') {
            found.extend(columns(&text));
        } else {
            found.insert(text);
        }
    }
    for argument in command.get_arguments() {
        let takes_values = argument.get_action().takes_values() && !argument.is_hide_set();
        let names = argument.get_value_names().filter(|_| takes_values);
        let names = names.unwrap_or_default().iter();
        found.extend(names.map(|name| name.as_str().to_owned()));
    }
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        help_texts(below, found);
    }
}

fn built() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn help_of_commands() -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    help_texts(&built(), &mut texts);
    help_texts(&MountHelper::command(), &mut texts);
    texts
}

/// Reports a text that has no Portuguese yet: an error in a version that is published, and a line on the standard error while
/// one is developed (`-dev`), so that a change can be made without Portuguese.
#[track_caller]
pub fn report_untranslated(what: &str) {
    let is_developed = env!("CARGO_PKG_VERSION").ends_with("-dev");
    assert!(is_developed, "{what}");
    let _ = writeln!(std::io::stderr(), "not in Portuguese yet: {what}");
}

/// Every template of the sources has its Portuguese, and every text of the help.
#[test]
fn every_message_is_in_the_catalogue() {
    let mut known = BTreeMap::new();
    let mut known_help = BTreeSet::new();
    for entry in entries() {
        if entry.context == "help" {
            known_help.insert(entry.text);
        } else {
            known.insert(entry.text, entry.plural);
        }
    }
    let templates = sources::templates();
    assert!(templates.len() > 600, "{} are found", templates.len());
    let mut missing: String = templates
        .iter()
        .filter(|(template, _)| known.get(&template.text) != Some(&template.plural))
        .map(|(template, file)| {
            let Template { text, plural } = template;
            let plural = plural.iter().map(|it| format!("msgid_plural {it:?}\n"));
            let plural: String = plural.collect();
            format!("# src/{}\nmsgid {text:?}\n{plural}\n", file.display())
        })
        .collect();
    for text in help_of_commands().difference(&known_help) {
        missing.push_str(&format!("msgctxt \"help\"\nmsgid {text:?}\n\n"));
    }
    if !missing.is_empty() {
        report_untranslated(&format!("not in src/command/language/pt_BR.po:\n{missing}"));
    }
}

/// The texts in `src/command` of two words or more that no person reads as a message: the file, and the beginnings of
/// the texts.
const NO_MESSAGES: &[(&str, &[&str])] = &[
    // Why the catalogue itself is not valid, which no catalogue can say.
    (
        "command/language/catalogue.rs",
        &[
            "the header has no",
            "is not translated",
            "has an unknown context",
            "is there twice",
        ],
    ),
    // The examples of the help, which the test above demands.
    ("command/cli/examples.rs", &["Example:\n", "Examples:\n"]),
    // Content of the items of the demonstration, and commands to try.
    (
        "command/commands/quickstart.rs",
        &[
            "Rainfall over",
            "Chuva no",
            "@techreport{",
            "title: ",
            "{is_mounted}\n\n  ls ",
        ],
    ),
    // Units.
    ("command/progress.rs", &["  {:.0} MB, {rate:.0} MB/s"]),
    // Labels, which are the same in every language, as in the manual.
    ("command/commands/status.rs", &["used by  {}\n"]),
    (
        "command/commands/explain.rs",
        &[
            "likely rep",
            "rep suffix",
            "IBIp suffix",
            "name space",
            "citation key",
        ],
    ),
];

/// In `src/command` no sentence is a bare literal: each is a `message!` or `plural!`, so that the test above
/// demands its translation.
#[test]
fn every_sentence_of_the_command_is_a_message() {
    let mut unused: BTreeSet<(&str, &str)> = NO_MESSAGES
        .iter()
        .flat_map(|(file, begins)| begins.iter().map(|begin| (*file, *begin)))
        .collect();
    let exceptions = unused.clone();
    let mut found = Vec::new();
    for (file, tokens) in sources::files() {
        let is_command = ["command", "command.rs", "main.rs"];
        if !is_command.iter().any(|it| file.starts_with(it)) {
            continue;
        }
        for text in sources::bare_sentences(tokens) {
            let exception = exceptions
                .iter()
                .find(|(exempt, begin)| file == Path::new(exempt) && text.starts_with(begin));
            match exception {
                Some(exception) => drop(unused.remove(exception)),
                None => found.push(format!("src/{}: {text:?}", file.display())),
            }
        }
    }
    assert!(found.is_empty(), "not a message!:\n{}", found.join("\n"));
    assert!(unused.is_empty(), "not in the sources: {unused:?}");
}

/// Every entry of the catalogue is a template of the sources, a text of the help, or a text of the system or
/// of a library that says so.
#[test]
fn every_entry_of_the_catalogue_is_used() {
    let templates = sources::templates();
    let messages: BTreeSet<&String> = templates.keys().map(|template| &template.text).collect();
    let help = help_of_commands();
    let unused: Vec<String> = entries()
        .into_iter()
        .filter(|entry| match &*entry.context {
            "help" => !help.contains(&entry.text),
            _ => entry.is_foreign == messages.contains(&entry.text),
        })
        .map(|entry| entry.text)
        .collect();
    assert!(unused.is_empty(), "no source has {unused:#?}");
}

/// A translation names the placeholders of its template.
#[test]
fn placeholders_agree() {
    let names = |text: &str| -> BTreeSet<String> {
        let names = ibi::message::placeholders(text).into_iter();
        names.map(str::to_owned).collect()
    };
    for entry in entries() {
        if entry.context == "help" || entry.is_foreign {
            continue;
        }
        let forms = if entry.plural.is_some() { 2 } else { 1 };
        assert_eq!(entry.translations.len(), forms, "{}", entry.text);
        for translation in &entry.translations {
            assert_eq!(names(&entry.text), names(translation), "{}", entry.text);
        }
    }
}

/// The catalogue has the errors of the system as the system prints them.
#[test]
fn errors_of_the_system_are_known_by_their_words() {
    let mut count = 0;
    for entry in entries() {
        let id = entry.text;
        let number = id.rsplit_once(" (os error ").map(|(_, number)| number);
        if let Some(number) = number.and_then(|text| text.strip_suffix(')')) {
            let number = number.parse().expect("a number");
            assert_eq!(std::io::Error::from_raw_os_error(number).to_string(), id);
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// Sentences as the command prints them, without the line ends that are due to the terminal.
fn flowing(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// All commands, by the words that call them.
fn calls(command: &clap::Command, before: &str, found: &mut Vec<String>) {
    found.push(before.to_owned());
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        calls(below, &format!("{before} {}", below.get_name()), found);
    }
}

/// No help has an English sentence left, short or long; and each has the same commands and options.
#[test]
fn the_help_is_in_portuguese() {
    let env = TestEnv::new();
    let mut texts = help_of_commands();
    texts.extend(["Usage:", "Options:", "Commands:", "Arguments:"].map(str::to_owned));
    // Names of values may be the same, and are words only.
    texts.retain(|text| text.contains(char::is_lowercase) && text.contains([' ', ':']));
    texts.insert("[OPTIONS]".to_owned());
    let mut commands = Vec::new();
    calls(&built(), "ibifs", &mut commands);
    assert!(commands.len() > 20, "{commands:?}");
    let script: String = commands
        .iter()
        .flat_map(|call| ["-h", "--help"].map(|flag| format!("{call} {flag}; echo =====\n")))
        .collect();
    let english = env.sh(&script);
    let portuguese = env.sh(&format!("export LC_ALL= LANG=pt_BR.UTF-8\n{script}"));
    let (english, portuguese): (Vec<&str>, Vec<&str>) = (
        english.split("=====").collect(),
        portuguese.split("=====").collect(),
    );
    assert_eq!(english.len(), portuguese.len());
    let flags = |help: &str| -> Vec<String> {
        let words = help.split_whitespace();
        let flags = words.filter(|word| word.starts_with('-') && word.len() > 1);
        let flags = flags.map(|word| word.trim_matches([',', '|', ']', '.', ';']).to_owned());
        flags.collect::<BTreeSet<String>>().into_iter().collect()
    };
    for (english, portuguese) in english.iter().zip(&portuguese) {
        let said = flowing(portuguese);
        for text in &texts {
            if said.contains(&flowing(text)) {
                report_untranslated(&format!("'{text}' in\n{portuguese}"));
            }
        }
        assert_eq!(flags(english), flags(portuguese), "{portuguese}");
        assert!(
            said.is_empty() || said.contains("Uso: ibifs"),
            "{portuguese}"
        );
    }
}

/// A command in Portuguese must end with this status and say exactly this on standard error.
#[track_caller]
fn complains(env: &TestEnv, command: &str, status: i32, expected: &str) {
    let output = env.run(&format!("export LC_ALL= LANG=pt_BR.UTF-8; {command}"));
    let said =
        String::from_utf8_lossy(&output.stderr).replace(&env.root().display().to_string(), "~");
    assert_eq!(said.trim_end(), expected, "{command}");
    assert_eq!(output.status.code(), Some(status), "{command}");
}

/// A command in Portuguese must print exactly this.
#[track_caller]
fn prints(env: &TestEnv, command: &str, expected: &str) {
    let said = env.sh(&format!("export LC_ALL= LANG=pt_BR.UTF-8; {command}"));
    let said = said.replace(&env.root().display().to_string(), "~");
    assert_eq!(said.trim_end(), expected, "{command}");
}

/// The locale decides, as with any program that has gettext.
#[test]
fn the_locale_decides() {
    let env = TestEnv::new();
    let says = |environment: &str, is_english: bool| {
        let said = env.run(&format!("{environment} ibifs umount nowhere"));
        let expected = if is_english {
            "ibifs: no store is mounted at 'nowhere'\n"
        } else {
            "ibifs: nenhum acervo está montado em 'nowhere'\n"
        };
        assert_eq!(
            String::from_utf8_lossy(&said.stderr),
            expected,
            "{environment}"
        );
    };
    says("LC_ALL=C LANGUAGE=pt_BR", true);
    says("LC_ALL=POSIX LANGUAGE=pt_BR LANG=pt_BR.UTF-8", true);
    says("LC_ALL=C.UTF-8 LANGUAGE=pt_BR", true);
    says("LC_ALL=pt_BR.UTF-8", false);
    says("LC_ALL= LC_MESSAGES=pt_BR.UTF-8 LANG=en_US.UTF-8", false);
    says("LC_ALL= LANG=pt_BR.UTF-8", false);
    says("LC_ALL=pt_BR.UTF-8 LANGUAGE=en:pt_BR", true);
    says("LC_ALL=de_DE.UTF-8 LANGUAGE=fr:pt_BR", false);
    says("LC_ALL=de_DE.UTF-8", true);
    says("LC_ALL=pt_BR.ISO-8859-1", true);
}

/// Errors of usage are in Portuguese: clap's sentences, its tips and its usage.
#[test]
fn usage_errors_are_in_portuguese() {
    let env = TestEnv::new();
    let more = "Para mais informações, experimente '--help'.";
    let refuses = |command: &str, expected: &str| {
        complains(&env, command, 2, &format!("erro: {expected}\n\n{more}"));
    };
    refuses(
        "ibifs mitn",
        "subcomando desconhecido 'mitn'\n\n  dica: existe algo parecido: 'mint'\n\nUso: ibifs <COMANDO>",
    );
    refuses(
        "ibifs init --port 99999 x",
        "valor inválido '99999' para '--port <PORTA>': 99999 não está em 1..=65535",
    );
    refuses(
        "ibifs init --ip hello x",
        "valor inválido 'hello' para '--ip <ENDEREÇO>': não tem a forma de um endereço IP",
    );
    refuses(
        "ibifs scrub --rate 5x s",
        "valor inválido '5x' para '--rate <BYTES>': não é um número de bytes, como 500K ou 50M",
    );
    refuses(
        "ibifs reindex --foo x",
        "argumento inesperado '--foo'\n\n  dica: para passar '--foo' como valor, use '-- --foo'\n\n\
         Uso: ibifs reindex [OPÇÕES] <ACERVO>",
    );
    refuses(
        "ibifs umount",
        "faltam estes argumentos obrigatórios:\n  <PONTO_DE_MONTAGEM>\n\nUso: ibifs umount [OPÇÕES] <PONTO_DE_MONTAGEM>",
    );
    refuses(
        "ibifs mint a --edition-of b --metadata-of c",
        "o argumento '--edition-of <ITEM>' não pode ser usado com '--metadata-of <ITEM>'\n\n\
         Uso: ibifs mint [OPÇÕES] [ACERVO-OU-PONTO]",
    );
    refuses(
        "ibifs fsck --repair --repair x",
        "o argumento '--repair' não pode ser usado mais de uma vez\n\nUso: ibifs fsck [OPÇÕES] <ACERVO>",
    );
    refuses(
        "ibifs show --store",
        "'--store <ACERVO-OU-PONTO>' exige um valor, e nenhum foi dado",
    );
    refuses(
        "ibifs mount a b --foreground=3",
        "valor inesperado '3' para '--foreground'; não se esperavam mais valores\n\n\
         Uso: ibifs mount [OPÇÕES] <ACERVO> <PONTO_DE_MONTAGEM>",
    );
    refuses(
        "ibifs show $'\\xff'",
        "um ou mais argumentos não são UTF-8 válido\n\nUso: ibifs show [OPÇÕES] <CAMINHO-OU-IBI>",
    );
    refuses(
        "ibifs ls A --state Lost",
        "valor inválido 'Lost' para '--state <ESTADO>'\n  [valores possíveis: original, copy, deleted]",
    );
    // A terminal obeys nothing of what was typed.
    let output = env.run("LC_ALL=pt_BR.UTF-8 ibifs init --port $'\\e[2J' x");
    assert!(!output.stderr.contains(&0x1b));
}

/// Refusals are in Portuguese: the sentence, the cause within it and the remedy.
#[test]
fn refusals_are_in_portuguese() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; mint A two > two");
    let complains = |command: &str, status: i32, expected: &str| {
        complains(&env, command, status, &format!("ibifs: {expected}"));
    };
    complains(
        "ibifs fsck nowhere",
        3,
        "'nowhere' não existe; indique um acervo, ou crie um com 'ibifs init'",
    );
    complains(
        "ibifs show 8JMKD3MGP8W/34PGRBS --store A",
        3,
        "nenhum item '8JMKD3MGP8W/34PGRBS' está hospedado aqui",
    );
    complains(
        "ibifs id check 8JMKD3MGP8W/34PGRBO",
        1,
        "o caractere 'O' (sufixo), no byte 19 de IBIp '8JMKD3MGP8W/34PGRBO', não cabe ali: só se \
         aceitam 2 a 9 e letras, exceto I, O, V, Y e Z",
    );
    complains(
        "ibifs id check a/b/c",
        1,
        "'a/b/c' não é um rep (quatro componentes, como em sid.inpe.br/mtc-m18/2009/02.16.17.46) nem \
         um IBIp (dois, como em 8JMKD3MGP8W/34PGRBS)",
    );
    complains(
        "ibifs id check sid.inpe.br/mtc-m18/2009/02.30.17.46",
        1,
        "dia '30', no byte 29 de rep 'sid.inpe.br/mtc-m18/2009/02.30.17.46', não existe no mês 02 do ano 2009",
    );
    complains(
        "ibifs mint A --translation-of x --lang ptbr",
        2,
        "idioma 'ptbr' não são duas letras minúsculas, nem estas com um hífen e duas maiúsculas, como \
         pt ou pt-BR",
    );
    complains(
        "ibifs init B.store --host nodot",
        2,
        "host 'nodot' não tem ponto, de modo que não há subdomínio sob o qual nomear itens; dê o nome \
         completo do host, como archive.example.org",
    );
    complains(
        "ibifs umount A.store",
        3,
        "nenhum acervo está montado em 'A.store'",
    );
    complains(
        "ibifs mount A.store A",
        5,
        "já há algo montado em '~/A'; encerre-o com 'ibifs umount ~/A'",
    );
    complains(
        "ibifs mount A.store A.store/x",
        3,
        "ponto de montagem 'A.store/x': Arquivo ou diretório inexistente (erro 2 do sistema); crie-o \
         com 'mkdir -p A.store/x'",
    );
    complains(
        "ibifs fsck --repair A.store 2>&1 | sed 's/processo [0-9]*/processo N/' >&2; exit ${PIPESTATUS[0]}",
        5,
        "o acervo está em uso pelo processo N, montado em '~/A'; desmonte-o antes com 'ibifs umount ~/A'",
    );
    complains(
        "ibifs relate A/$(cat one) --next-edition A/$(cat one) 2>&1 | sed 's/ de .*}: /: /' >&2; exit ${PIPESTATUS[0]}",
        4,
        "ibi.nextedition: as edições formariam um círculo; uma edição não pode suceder a si mesma",
    );
    complains(
        "ibifs unrelate A/$(cat one) --metadata 2>&1 | sed 's/ de .*: /: /' >&2; exit ${PIPESTATUS[0]}",
        3,
        "ibi.metadata: não existe tal item ou relação",
    );
    complains(
        "ibifs backup A A/copy",
        4,
        "'A/copy' está dentro de um acervo montado; indique um diretório em outro lugar",
    );
    complains(
        "mkdir full; touch full/x; ibifs backup A full",
        4,
        "'full': '~/full' não está vazio e não é um backup; indique um diretório novo",
    );
    complains(
        "ibifs resolver list --db .",
        2,
        "--db pede o caminho de um arquivo",
    );
    // Texts of others stay as they are, and nothing in a name is taken for a message.
    complains(
        "ibifs fsck 'no store is mounted'",
        3,
        "'no store is mounted' não existe; indique um acervo, ou crie um com 'ibifs init'",
    );
    complains(
        "ibifs resolver register --db db --key-file 'list of keys' example.org/x/2026/11.22.00.00",
        1,
        "list of keys: Arquivo ou diretório inexistente (erro 2 do sistema)",
    );
    complains(
        "mkdir 'is empty: the index is damaged'; touch 'is empty: the index is damaged/x'
         ibifs backup A 'is empty: the index is damaged'",
        4,
        "'is empty: the index is damaged': '~/is empty: the index is damaged' não está vazio e não é \
         um backup; indique um diretório novo",
    );
}

/// Reports on a store are in Portuguese: findings, sums and remedies. Codes, names and states are data.
#[test]
fn findings_are_printed_in_portuguese() {
    let env = TestEnv::new();
    let says = |command: &str, expected: &str| prints(&env, command, expected);
    says(
        "ibifs init A.store --host archive-a.example.org | sed 's/IBIps .*/IBIps/'",
        "A.store agora é um Arquivo: os reps começam com example.org/archive-a, os IBIps\n\
         monte-o com 'ibifs mount A.store PONTO'",
    );
    env.sh("ibifs mint A.store | head -n 1 > one; echo text > A.store/col/$(cat one)/doc/text");
    says("ibifs fsck A.store", "2 itens, 0 ocorrência");
    says("ibifs reindex A.store", "2 itens indexados");
    says(
        "ibifs scrub A.store",
        "2 itens, 1 arquivo, 5 bytes, 1 item registrado pela primeira vez",
    );
    says(
        "echo more > A.store/col/$(cat one)/doc/text; ibifs scrub A.store | sed 's;/.*/;/;'",
        "changed: col/text: foi escrito desde então\n2 itens, 1 arquivo, 5 bytes, 1 changed",
    );
    says(
        "ibifs backup A.store B.store | sed 's/, [0-9]* bytes/, N bytes/'",
        "2 itens: 7 arquivos copiados, N bytes; 0 inalterado, 0 removido",
    );
    env.sh("echo broken { > A.store/col/$(cat one)/.ibi");
    let found = "a ficha não pode ser aceita: a ficha não é uma lista de pares: linha 2, coluna 1 da \
                 lista de pares: esperava-se uma palavra ou '}', há o fim; --repair a põe de lado como \
                 .ibi.broken-1 e escreve o que o índice sabe";
    let one = env.sh("cat one").trim().to_owned();
    says(
        "ibifs fsck A.store || true",
        &format!("broken-sidecar: {one}: {found} (erro)\n2 itens, 1 ocorrência"),
    );
    says(
        "ibifs fsck --dry-run A.store || true",
        &format!("broken-sidecar: {one}: {found} (erro, seria reparado)\n2 itens, 1 ocorrência"),
    );
    // Output for programs is the same in every locale.
    let json = "ibifs fsck --json A.store || true";
    let english = env.sh(json);
    assert!(english.contains("the sidecar is not valid"), "{english}");
    says(
        json,
        english
            .replace(&env.root().display().to_string(), "~")
            .trim_end(),
    );
    says(
        "ibifs fsck --repair A.store",
        &format!(
            "broken-sidecar: {one}: {found} (erro, reparado)\n2 itens, 1 ocorrência, 1 reparada"
        ),
    );
    env.sh("printf 'rep,state\\n%s,Lost\\n' $(cat one) > table.csv");
    says(
        "ibifs import A.store table.csv || true",
        "linha 2: o estado 'Lost' não é Original nem Copy\n1 linha, 1 inválida: nada foi mudado",
    );
    says(
        "ibifs export --bagit --store A.store $(cat one) bags | sed 's;: .*/.*: .*/.*;;'",
        "novo\n1 item: 1 escrito, 0 inalterado",
    );
    let status = "ibifs status A.store | head -n 6 | tail -n +2 | cut -d, -f 1";
    says(
        status,
        "mounted  no\nused by  nenhum processo\nitems    2 originais\ncontent  0 arquivo com 0 bytes em 0 item\nminted   2 na última hora",
    );
    says(
        "ibifs show A.store/col/$(cat one) | grep state",
        "state            Original",
    );
}

/// The Portuguese manual has every finding of fsck in the words in which it is printed.
#[test]
fn the_manual_has_the_findings_in_the_same_words() {
    let catalogue = Catalogue::parse(PT_BR).expect("a good catalogue");
    let sentence = |text: &Message| {
        let said = catalogue.translate(text);
        match said.split(' ').next() {
            // A name stays as it is written.
            Some(word) if word.contains('.') || word.starts_with('-') => format!("{said}."),
            _ => {
                let mut letters = said.chars();
                let first = letters.next().into_iter().flat_map(char::to_uppercase);
                format!("{}{}.", first.collect::<String>(), letters.as_str())
            }
        }
    };
    let expected: String = CheckCode::ALL
        .iter()
        .map(|code| {
            let severity = catalogue.translate(&code.severity());
            let repaired = if code.is_repairable() {
                ", reparado"
            } else {
                ""
            };
            let (what, remedy) = (sentence(&code.what()), sentence(&code.remedy()));
            format!(
                ".It Sy {} Pq {severity}{repaired}\n{what}\n{remedy}\n",
                code.word()
            )
        })
        .collect();
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("man/pt_BR/ibifs-fsck.1");
    let page = std::fs::read_to_string(page).expect("a page");
    if !page.contains(&expected) {
        report_untranslated(&format!(
            "findings of man/pt_BR/ibifs-fsck.1, which are\n{expected}"
        ));
    }
}
