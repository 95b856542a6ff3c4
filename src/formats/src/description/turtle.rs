//! Turtle (RDF 1.1): the elements of Dublin Core, each a literal.

use super::Description;

pub(super) fn write(description: &Description) -> String {
    let mut text = "@prefix dc: <http://purl.org/dc/elements/1.1/> .\n\n".to_owned();
    let mut end = format!("<{}>", description.url);
    for (element, value) in description.record.core.iter() {
        text.push_str(&format!("{end}\n    dc:{} \"", element.name()));
        // Values have no line ends and no other control characters.
        for character in value.chars() {
            if matches!(character, '"' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text.push('"');
        end = " ;".to_owned();
    }
    // There is always an identifier.
    text.push_str(" .\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Element;

    #[test]
    fn values_are_escaped() {
        let mut description = Description {
            url: "http://urlib.net/8JMKD3MGP8W/34PGRBS".to_owned(),
            ..Description::default()
        };
        let core = &mut description.record.core;
        core.push(Element::Title, "São \"x\" \\ y");
        core.push(Element::Date, "2009");
        assert_eq!(
            write(&description),
            "@prefix dc: <http://purl.org/dc/elements/1.1/> .\n\n\
             <http://urlib.net/8JMKD3MGP8W/34PGRBS>\n    \
             dc:title \"São \\\"x\\\" \\\\ y\" ;\n    dc:date \"2009\" .\n"
        );
    }
}
