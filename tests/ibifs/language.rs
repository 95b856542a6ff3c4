//! What the command says in Portuguese: all of it, where the locale says so, and nowhere else.

mod sources;

use std::collections::{BTreeMap, BTreeSet};

use clap::CommandFactory;
use clap::builder::StyledStr;
use ibifs::archive::Code;
use ibifs::command::cli::{Cli, MountHelper};
use ibifs::command::language::{Catalogue, PT_BR};

use crate::support::TestEnv;

/// Texts of the sources that look like sentences and are told to nobody, or are data.
const NOT_TOLD: [&str; 63] = [
    // What files of the store hold, and items of the demonstration.
    "host {}\nport {}\nip {}\nip.port {}\ngranularity {}\nibi.archiveservice {}\narchiveaddress {address}",
    "store {fingerprint}",
    "mountpoint {path}",
    "word {word}\npid {}",
    "finished {}",
    "ibi.archiveservice {}\nstarted {}",
    "last {}",
    "Rainfall over the upper Paraíba valley, 1995-2025\n\nFirst edition.",
    "Rainfall over the upper Paraíba valley, 1995-2026\n\nSecond edition, with one year more.",
    "Chuva no alto vale do Paraíba, 1995-2026\n\nTradução da segunda edição.",
    "title: Chuva no alto vale do Paraíba\ncreator: Souza, Ana\ncreator: Lima, José\nlanguage: pt",
    " inode={inode}",
    " xattr.{}={}",
    "type=file size={size} contents={}",
    "type=link link={}",
    "{path} {kind} mode={:04o} uid={} gid={} time={}.{:09}",
    "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8",
    "Source-Organization: {}\nBagging-Date: {date}\nBag-Software-Agent: ibifs {}\nPayload-Oxum: {}.{count}",
    "{IDENTIFIER}: {name}",
    "Directories by the digest of the identifier, objects by the identifier",
    "ibifs export",
    "ibi {}",
    "attribute {name} {value}",
    // Names of pairs and places.
    "col",
    "granularity",
    "host",
    "ip",
    "mountpoint",
    "pid",
    // Labels of what is known, and lines whose parts are told each.
    "rep suffix",
    "items    {items}",
    "store    {}",
    "mounted  no",
    "last     {}",
    "index    {index}",
    "  {:.0} MB, {rate:.0} MB/s",
    "{is_mounted}\n\n  ls {shown}/{rep}/doc\n  cat {shown}/{ibip}/doc/report.txt\n  readlink '{shown}/{ibip}!'\n  cat '{shown}/{ibip}!/doc/report.txt'\n  cat '{shown}/{ibip}!+(pt)/doc/report.txt'\n  cat '{shown}/{ibip}!:(oai_dc)'\n  mkdir {shown}/.mint/mine && readlink {shown}/.mint/.mine\n  ibifs umount {shown}",
    "minted   {rate}",
    "removed  {removed}",
    "mounted  {}\ndata     {}",
    "index    {index}: {}",
    "used by  {server}",
    "ibifs: {}",
    "ibifs: {is_mounted}",
    "{}ibifs: {failure}",
    "{sentence}: {}",
    "{word}: {}: {sentence}",
    "{word}: {item}: {}",
    "copied: {name}",
    "handed-over: {name}",
    "claimed: {name}",
    "unchanged: {name}",
    "skipped: {name}: {}: {}",
    "{word}: {}: {}",
    "{word}: {}: {sentence}{accepted}",
    "{}: {}: {}; {} ({}{outcome})",
    // SQL.
    "AND rep IS NULL",
    "{below} AND state <> 'Deleted' {more}",
    "{column} > ?1 || '/' AND {column} < ?1 || '0'",
    "item.id, item.rep, item.ibip, item.state, item.service_rep, item.service_ibip, item.language, item.target, item.removed_at",
    "relation.kind AS kind, relation.target_rep AS target_rep, relation.target_ibip AS target_ibip",
    "\n    -- Any date up to this one may have been handed out since `last` was written; NULL when none\n    -- was. What is not known to be free is taken.\n    ALTER TABLE ledger ADD COLUMN reserved TEXT;\n    ",
    "{} GetFileList",
];

/// The entries of the catalogue: context, English, and where the English comes from if from elsewhere.
fn entries() -> Vec<(String, String, Option<String>)> {
    let catalogue = polib::po_file::parse_from_reader(PT_BR.as_bytes()).expect("a PO file");
    let entries = catalogue.messages().map(|message| {
        let elsewhere = message.extracted_comments().strip_prefix("elsewhere: ");
        (
            message.msgctxt().unwrap_or_default().to_owned(),
            message.msgid().to_owned(),
            elsewhere.map(str::to_owned),
        )
    });
    entries.collect()
}

/// What the lines of a longer text have between wider gaps, but for commands and numbers.
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

/// The end of a line belongs to no message.
fn plain(text: &str) -> String {
    text.trim_end_matches('\n').to_owned()
}

/// Every text of the sources that reaches a person has its Portuguese.
#[test]
fn every_message_is_in_the_catalogue() {
    let known: BTreeSet<String> = entries().into_iter().map(|(_, id, _)| id).collect();
    let exempt: BTreeSet<&str> = NOT_TOLD.into();
    let mut missing = BTreeMap::new();
    let mut told = BTreeSet::new();
    for text in sources::literals() {
        let message = plain(&text.text);
        if sources::is_for_people(&text) {
            told.insert(message.clone());
            if !known.contains(&message) && !exempt.contains(&*message) {
                missing.insert(message, text.file);
            }
        }
    }
    assert!(told.len() > 350, "{} are found", told.len());
    let missing: String = missing
        .iter()
        .map(|(text, file)| format!("# src/{}\nmsgid {text:?}\nmsgstr \"\"\n\n", file.display()))
        .collect();
    assert!(
        missing.is_empty(),
        "not in src/command/language/pt_BR.po:\n{missing}"
    );
    let idle: Vec<&&str> = exempt
        .iter()
        .filter(|text| !told.contains(**text))
        .collect();
    assert!(idle.is_empty(), "exempt and not there: {idle:?}");
}

/// Every text of the help has its Portuguese.
#[test]
fn every_help_is_in_the_catalogue() {
    let known: BTreeSet<String> = entries()
        .into_iter()
        .filter(|(context, ..)| context == "help")
        .map(|(_, id, _)| id)
        .collect();
    let mut texts = BTreeSet::new();
    help_texts(&built(), &mut texts);
    help_texts(&MountHelper::command(), &mut texts);
    let missing: String = texts
        .difference(&known)
        .map(|text| format!("msgctxt \"help\"\nmsgid {text:?}\nmsgstr \"\"\n\n"))
        .collect();
    assert!(
        missing.is_empty(),
        "not in src/command/language/pt_BR.po:\n{missing}"
    );
}

/// Nothing is in the catalogue that nobody says.
#[test]
fn no_entry_is_idle() {
    let mut texts = BTreeSet::new();
    help_texts(&built(), &mut texts);
    help_texts(&MountHelper::command(), &mut texts);
    texts.extend(sources::literals().iter().map(|text| plain(&text.text)));
    let idle: Vec<String> = entries()
        .into_iter()
        .filter(|(_, id, elsewhere)| elsewhere.is_none() && !texts.contains(id))
        .map(|(_, id, _)| id)
        .collect();
    assert!(idle.is_empty(), "nobody says {idle:#?}");
}

/// What the catalogue has of the system is what the system says.
#[test]
fn errors_of_the_system_are_known_by_their_words() {
    let mut count = 0;
    for (_, id, _) in entries() {
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
    let mut texts = BTreeSet::new();
    help_texts(&built(), &mut texts);
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
            assert!(!said.contains(&flowing(text)), "'{text}' in\n{portuguese}");
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

/// What was not understood: clap's sentences, its tips and its usage.
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
         Uso: ibifs mint [OPÇÕES] <ACERVO-OU-PONTO>",
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

/// What is refused: the sentence, the cause within it and the remedy.
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
        "'nowhere' não é um acervo do ibifs (não há archive.ibi nele); crie um com 'ibifs init nowhere'",
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
        "ibi.metadata: não existe tal coisa",
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
    // What is not of ours stays as it is, and nothing in a name is taken for a message.
    complains(
        "ibifs fsck 'no store is mounted'",
        3,
        "'no store is mounted' não é um acervo do ibifs (não há archive.ibi nele); crie um com \
         'ibifs init no store is mounted'",
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

/// What is told of a store: findings, sums and remedies; codes, names and states are data.
#[test]
fn what_is_found_is_told_in_portuguese() {
    let env = TestEnv::new();
    let says = |command: &str, expected: &str| prints(&env, command, expected);
    says(
        "ibifs init A.store --host archive-a.example.org | sed 's/IBIps .*/IBIps/'",
        "A.store agora é um Arquivo: os reps começam com example.org/archive-a, os IBIps\n\
         monte-o com 'ibifs mount A.store PONTO'",
    );
    env.sh("ibifs mint A.store | head -n 1 > one; echo text > A.store/col/$(cat one)/doc/text");
    says("ibifs fsck A.store", "itens: 2; ocorrências: 0");
    says("ibifs reindex A.store", "itens indexados: 2");
    says(
        "ibifs scrub A.store",
        "itens: 2; arquivos: 1; bytes: 5; itens registrados pela primeira vez: 1",
    );
    says(
        "echo more > A.store/col/$(cat one)/doc/text; ibifs scrub A.store | sed 's;/.*/;/;'",
        "changed: col/text: foi escrito desde então\nitens: 2; arquivos: 1; bytes: 5; changed: 1",
    );
    says(
        "ibifs backup A.store B.store | sed 's/bytes: [0-9]*/bytes: N/'",
        "itens: 2; arquivos copiados: 6; bytes: N; inalterados: 0; removidos: 0",
    );
    env.sh("echo broken { > A.store/col/$(cat one)/.ibi");
    let found = "a ficha não pode ser aceita: a ficha não é uma lista de pares: linha 2, coluna 1 da \
                 lista de pares: esperava-se uma palavra ou '}', há o fim; --repair a põe de lado como \
                 .ibi.broken-1 e escreve o que o índice sabe";
    let one = env.sh("cat one").trim().to_owned();
    says(
        "ibifs fsck A.store || true",
        &format!("broken-sidecar: {one}: {found} (erro)\nitens: 2; ocorrências: 1"),
    );
    says(
        "ibifs fsck --dry-run A.store || true",
        &format!("broken-sidecar: {one}: {found} (erro, seria reparado)\nitens: 2; ocorrências: 1"),
    );
    // What programs read is the same in every locale.
    let json = "ibifs fsck --json A.store || true";
    let english = env.sh(json);
    assert!(
        english.contains("the sidecar cannot be believed"),
        "{english}"
    );
    says(
        json,
        english
            .replace(&env.root().display().to_string(), "~")
            .trim_end(),
    );
    says(
        "ibifs fsck --repair A.store",
        &format!(
            "broken-sidecar: {one}: {found} (erro, reparado)\nitens: 2; ocorrências: 1; reparadas: 1"
        ),
    );
    env.sh("printf 'rep,state\\n%s,Lost\\n' $(cat one) > table.csv");
    says(
        "ibifs import A.store table.csv || true",
        "linha 2: o estado 'Lost' não é Original nem Copy\nlinhas: 1; inválidas: 1: nada foi mudado",
    );
    says(
        "ibifs export --bagit --store A.store $(cat one) bags | sed 's;: .*/.*: .*/.*;;'",
        "novo\nitens: 1; escritos: 1; inalterados: 0",
    );
    let status = "ibifs status A.store | head -n 5 | tail -n +2 | cut -d, -f 1";
    says(
        status,
        "mounted  no\nused by  ninguém\nitems    2 originais\nminted   2 na última hora",
    );
    says(
        "ibifs show A.store/col/$(cat one) | grep state",
        "state            Original",
    );
}

/// The Portuguese manual has every finding of fsck in the words in which it is told.
#[test]
fn the_manual_has_the_findings_in_the_same_words() {
    let catalogue = Catalogue::parse(PT_BR).expect("a good catalogue");
    let sentence = |text: &str| {
        let said = catalogue.told(text);
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
    let repaired = catalogue.told(", repaired");
    let expected: String = Code::ALL
        .iter()
        .map(|code| {
            let repaired = if code.is_repairable() { &*repaired } else { "" };
            let bad = catalogue.told(&code.severity().to_string());
            let (what, remedy) = (
                sentence(&code.what().to_string()),
                sentence(&code.remedy().to_string()),
            );
            format!(
                ".It Sy {} Pq {bad}{repaired}\n{what}\n{remedy}\n",
                code.word()
            )
        })
        .collect();
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("man/pt_BR/ibifs-fsck.1");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains(&expected), "{expected}");
}
