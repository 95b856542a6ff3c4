//! Messages with arguments and plurals, in English and through a catalogue.

use super::*;

#[test]
fn a_message_is_its_template_filled_in() {
    let name = "x";
    let said = |message: Message| message.to_string();
    assert_eq!(said(message!("nothing")), "nothing");
    assert_eq!(said(message!("'{name}' is '{name}'", name)), "'x' is 'x'");
    assert_eq!(said(message!("{{rep {name}}}", name)), "{rep x}");
    assert_eq!(
        said(message!(
            "a {b} {c}",
            c = 1_u8,
            b = message!("{name}!", name)
        )),
        "a x! 1"
    );
    // An argument is not a template.
    assert_eq!(said(message!("'{name}'", name = "{name}")), "'{name}'");
}

#[test]
fn messages_are_joined() {
    let joined = |texts: &[&str]| {
        let messages = texts.iter().map(|text| Message::verbatim(*text));
        Message::joined(messages.collect()).map(|message| message.to_string())
    };
    assert_eq!(joined(&[]), None);
    assert_eq!(joined(&["a"]).as_deref(), Some("a"));
    assert_eq!(joined(&["a", "b", "c"]).as_deref(), Some("a; b; c"));
}

#[test]
fn placeholders_of_a_template() {
    for (template, expected) in [
        ("", &[][..]),
        ("no brace", &[]),
        ("{a} of {b}: {a}", &["a", "b", "a"]),
        ("{{a}} {b}", &["b"]),
        ("}{a}", &["a"]),
        ("{a", &[]),
    ] {
        assert_eq!(placeholders(template), expected, "{template}");
    }
}

/// The compiler runs this check on each template.
#[test]
fn templates_are_checked() {
    let is_good = |template, names| std::panic::catch_unwind(|| check(template, names)).is_ok();
    for (template, names, expected) in [
        ("", &[][..], true),
        ("{{x}} }}", &[], true),
        ("{x}", &["x"], true),
        ("{y}, {x}, {x}", &["x", "y"], true),
        ("{", &[], false),
        ("x}", &[], false),
        ("a } b", &[], false),
        ("{x", &["x"], false),
        ("{x}", &["y"], false),
        ("{x}", &["xy"], false),
        ("{xy}", &["x"], false),
        ("{x}", &["x", "y"], false),
        ("{x}{y}", &["x"], false),
    ] {
        assert_eq!(is_good(template, names), expected, "{template} {names:?}");
    }
    assert_eq!(find(b"{b}", 1, 2, &["a", "b"]), 1);
    assert_eq!(find(b"{c}", 1, 2, &["a", "b"]), 2);
}

#[test]
fn a_translation_may_name_the_arguments_in_any_order() {
    let lookup = |template: &str, count: Option<u64>| match (template, count) {
        ("{a} of {b}", None) => Some("{b}: {a}, {a}"),
        ("is empty", None) => Some("está em branco"),
        ("{count} item", Some(1)) => Some("{count} unidade"),
        ("{count} item", Some(_)) => Some("{count} unidades"),
        ("No such file", None) => Some("Arquivo inexistente"),
        _ => None,
    };
    let said = |message: Message| message.translated(&lookup);
    let system = Message::foreign("No such file");
    assert_eq!(
        said(message!("{a} of {b}", a = "1", b = system)),
        "Arquivo inexistente: 1, 1"
    );
    assert_eq!(
        said(message!(
            "{a} of {b}",
            a = "is empty",
            b = message!("is empty")
        )),
        "está em branco: is empty, is empty"
    );
    assert_eq!(
        said(plural!("{count} item", "{count} items", count = 1_u64)),
        "1 unidade"
    );
    assert_eq!(
        said(plural!("{count} item", "{count} items", count = 0_u64)),
        "0 unidades"
    );
    assert_eq!(said(message!("new")), "new");
}
