//! Descriptions of items in all formats, `<ibi>:(FORMAT)`, read by other programs and checked with the public
//! schemas: CSL-JSON with csl-data.json and schema.org with the schema of the package commonmeta-py, DataCite with the
//! JSON schema of the package datacite, to which the XML is converted, and which its JSON equals, oai_dc with its XSD,
//! CITATION.cff with the schema of the Citation File Format 1.2.0 (CC BY 4.0).

use crate::collections::validators;
use crate::http::served::Served;
use crate::support::TestEnv;

/// Reads the documents of a directory, one for each format, and prints title, creators and publisher of each.
const READ: &str = r#"
import json, os, sys, glob, sysconfig
from lxml import etree
import jsonschema, bibtexparser, rdflib, yaml
from pybtex.database import parse_string
from pylatexenc.latex2text import LatexNodes2Text

site = sysconfig.get_paths()["purelib"]
here = sys.argv[1]
text = lambda name: open(os.path.join(here, name), encoding="utf-8").read()
schema = lambda path: json.load(open(os.path.join(site, path)))
plain = lambda tex: LatexNodes2Text().latex_to_text(tex.replace("\\textbraceleft", "\\{").replace("\\textbraceright", "\\}"))

etree.XMLSchema(etree.parse(sys.argv[2])).assertValid(etree.parse(os.path.join(here, "oai_dc")))

for name in ["bibtex", "BibINPE"]:
    read = bibtexparser.parse_string(text(name))
    assert len(read.entries) == 1 and not read.failed_blocks, read.failed_blocks
    entry = list(parse_string(text(name), "bibtex").entries.values())[0]
    print(name, "|", plain(entry.fields["title"]), "|", entry.fields["ibi"], "|", len(entry.persons.get("author", [])))
    assert entry.fields["url"] == "http://archive-a.example.org/" + entry.fields["ibi"]
    if name == "BibINPE":
        assert entry.fields["urlaccessdate"][4:6] == ", ", entry.fields["urlaccessdate"]

csl = json.loads(text("csl"))
jsonschema.validate(csl, schema("commonmeta/resources/csl-data.json"))
print("csl |", csl[0]["title"], "|", csl[0]["id"], "|", len(csl[0].get("author", [])))

# DataCite: the XML as its JSON, which has a public schema in the package of the same name.
K = "{http://datacite.org/schema/kernel-4}"
root = etree.fromstring(text("datacite").encode())
assert root.tag == K + "resource"
known = "identifier creators titles publisher publicationYear resourceType subjects contributors dates language alternateIdentifiers relatedIdentifiers formats rightsList descriptions".split()
assert all(child.tag in [K + name for name in known] for child in root)
all_ = lambda path: root.findall("/".join(K + part for part in path.split("/")))
def agent(node, kind):
    name = node.find(K + kind + "Name")
    made = {"name": name.text}
    if "nameType" in name.attrib: made["nameType"] = name.attrib["nameType"]
    for part in ["givenName", "familyName"]:
        if node.find(K + part) is not None: made[part] = node.find(K + part).text
    if "contributorType" in node.attrib: made["contributorType"] = node.attrib["contributorType"]
    return made
identifier = all_("identifier")[0]
made = {
    "schemaVersion": "http://datacite.org/schema/kernel-4",
    {"DOI": "doi", "URL": "url"}[identifier.attrib["identifierType"]]: identifier.text,
    "creators": [agent(node, "creator") for node in all_("creators/creator")],
    "contributors": [agent(node, "contributor") for node in all_("contributors/contributor")],
    "titles": [{"title": node.text, **node.attrib} for node in all_("titles/title")],
    "publisher": {"name": all_("publisher")[0].text},
    "publicationYear": all_("publicationYear")[0].text,
    "types": {"resourceType": all_("resourceType")[0].text, **all_("resourceType")[0].attrib},
    "subjects": [{"subject": node.text} for node in all_("subjects/subject")],
    "dates": [{"date": node.text, **node.attrib} for node in all_("dates/date")],
    "alternateIdentifiers": [{"alternateIdentifier": node.text, **node.attrib} for node in all_("alternateIdentifiers/alternateIdentifier")],
    "relatedIdentifiers": [{"relatedIdentifier": node.text, **node.attrib} for node in all_("relatedIdentifiers/relatedIdentifier")],
    "formats": [node.text for node in all_("formats/format")],
    "rightsList": [{"rights": node.text} for node in all_("rightsList/rights")],
    "descriptions": [{"description": node.text, **node.attrib} for node in all_("descriptions/description")],
}
if all_("language"): made["language"] = all_("language")[0].text
said = json.loads(text("datacite_json"))
for document in [made, said]: jsonschema.validate(document, schema("datacite/schemas/datacite-v4.5.json"))
assert said == {name: value for name, value in made.items() if value != []}, (said, made)
print("datacite |", made["titles"][0]["title"], "|", made["alternateIdentifiers"][0]["alternateIdentifier"], "|", len([1 for creator in made["creators"] if creator["name"] != ":unav"]))

linked = json.loads(text("jsonld"))
kinds = schema("commonmeta/resources/schema_org-v0.1.json")["properties"]["@type"]["enum"]
assert linked["@type"] in kinds and linked["@context"] == "https://schema.org", linked["@type"]
# The context is not fetched: its vocabulary is.
linked["@context"] = {"@vocab": "https://schema.org/"}
graph = rdflib.Graph().parse(data=json.dumps(linked), format="json-ld")
S = rdflib.Namespace("https://schema.org/")
item = rdflib.URIRef(linked["@id"])
names = list(graph.objects(item, S.name))
assert len(names) == 1
values = [str(value) for node in graph.objects(item, S.identifier) if str(graph.value(node, S.propertyID)) == "IBI" for value in graph.objects(node, S.value)]
print("jsonld |", str(names[0]), "|", values[0], "|", len(list(graph.objects(item, S.author))))

M = "{http://www.loc.gov/mods/v3}"
mods = etree.fromstring(text("mods").encode())
roles = [node.text for node in mods.findall(M + "name/" + M + "role/" + M + "roleTerm")]
print("mods |", mods.find(M + "titleInfo/" + M + "title").text, "|", mods.find(M + "identifier[@type='ibi']").text, "|", roles.count("author"))

values = [(node.attrib["element"], node.attrib["qualifier"], node.text) for node in etree.fromstring(text("dspace").encode())]
of = lambda *name: [value for *known, value in values if tuple(known) == name]
print("dspace |", of("title", "none")[0], "|", of("identifier", "other")[1], "|", len(of("contributor", "author")))

cff = yaml.safe_load(text("cff"))
jsonschema.validate(cff, json.load(open(sys.argv[3])))
work = cff.get("preferred-citation", cff)
print("cff |", cff["title"], "|", work["identifiers"][0]["value"], "|", len([1 for author in work["authors"] if author != {"name": "unknown"}]))
"#;

/// Title, identifier and number of creators in all formats that programs read.
fn reads(env: &TestEnv, name: &str, title: &str, creators: usize) {
    let schemas = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema");
    let python = validators().join("python");
    let ibip = env.sh(&format!("cat {name}"));
    let expected: Vec<String> = [
        "bibtex", "BibINPE", "csl", "datacite", "jsonld", "mods", "dspace", "cff",
    ]
    .iter()
    .map(|format| format!("{format} | {title} | {ibip} | {creators}"))
    .collect();
    env.sh(&format!(
        "for view in \"A/$(< {name})\" \"A/$(rep \"A/$(< {name})\")\"; do
             mkdir -p read
             for format in oai_dc BibINPE bibtex refer csl datacite datacite_json jsonld mods dspace cff; do
                 cat \"$view:($format)\" > read/$format; test -s read/$format
                 test \"$(stat -c %s \"$view:($format)\")\" = $(stat -c %s read/$format)
                 cmp read/$format \"$view?GetMetadata($format)\"
             done
         done"
    ));
    env.sh(&format!("cat > read.py <<'END'\n{READ}\nEND"));
    let script = format!(
        "'{}' read.py read '{schemas}/oai_dc.xsd' '{schemas}/cff-1.2.0.json'",
        python.display()
    );
    env.prints(&script, &expected.join("\n"));
}

/// Each way in which an item is described gives documents that other programs read.
#[test]
fn other_programs_read_every_format() {
    let env = TestEnv::new().with_a();
    env.sh("for name in plain bib xml refer hostile nothing; do ibifs mint A | tail -n 1 > $name; done");
    env.sh("printf 'título: Chuva\\nautor: Silva, Ana\\nautor: INPE\\nassunto: a, b\\nano: 2009\\n' > A/$(< plain):");
    reads(&env, "plain", "Chuva", 2);
    env.sh("echo '@article{k, title = {Rain \\& {\\'\\''o}leo}, author = {Ana Silva and Beto Souza}, journal = {RBC},
         volume = 3, pages = {1--9}, year = 2009, month = feb, doi = {10.1000/1}}' > A/$(< bib):");
    reads(&env, "bib", "Rain & óleo", 2);
    env.sh(
        "echo '<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">
         <rdf:Description><dc:title>Tides</dc:title><dc:creator>Silva, Ana</dc:creator></rdf:Description></rdf:RDF>' > A/$(< xml):",
    );
    reads(&env, "xml", "Tides", 1);
    // A record of URLib in Latin-1, as a metadata item.
    env.sh(
        "m=$(ibifs mint A | tail -n 1); ibifs relate A/$(< refer) --metadata $m
         printf '%%0 Thesis\\n%%T Avalia\\347\\343o\\n%%@electronicmailaddress a@b\\n%%A Fran\\347a, V.,\\n%%@affiliation INPE\\n%%9 Mestrado\\n%%D 2008\\n' > A/$m/doc/r.refer",
    );
    reads(&env, "refer", "Avaliação", 1);
    env.prints(
        "cat \"A/$(< refer):(refer)\" | grep -v '^%U\\|^%@ibi'; grep -o 'electronicmailaddress = .*' \"A/$(< refer):(BibINPE)\"",
        "%0 Thesis\n%A França, V.\n%T Avaliação\n%D 2008\n%@electronicmailaddress a@b\n%@affiliation INPE\n\
         electronicmailaddress = \"a@b\",",
    );
    env.sh(
        "printf '%s\\n' 'title: ]]> } { \\ % \"q\" <b> & @misc{x,' 'creator: a } b and c' 'creator: , ,' 'date: } 20' \
         'type: ]]>' 'publisher: %' 'language: \"' 'identifier: https://doi.org/10.1/}\"{\\' 'subject: a,b}' > A/$(< hostile):",
    );
    reads(&env, "hostile", "]]> } { \\ % \"q\" <b> & @misc{x,", 2);
    let ibip = env.sh("cat nothing");
    reads(&env, "nothing", &ibip, 0);
    // Other formats are none, and none can be written.
    env.sh("! cat \"A/$(< plain):(marc21)\" 2> /dev/null; ! sh -c \"echo x > 'A/$(< plain):(bibtex)'\" 2> /dev/null");
}

/// The service sends each format with its media type, gives a resolver its address, and harvesters may request
/// DataCite.
#[test]
fn formats_are_served() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs mint A | head -n 1 > x; printf 'title: Rain\\n' > A/$(< x):");
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        "for format in oai_dc BibINPE bibtex refer csl datacite datacite_json jsonld mods dspace cff; do
             curl -sSg -D head -o body \"$U/$(< x):($format)\"; cmp body \"A/$(< x):($format)\"
             tr -d '\\r' < head | sed -n 's/^content-type: //Ip'
         done
         curl -sgo /dev/null -w '%{http_code}\\n' \"$U/$(< x):(marc21)\"
         curl -sg \"$U/$(< x):(BibINPE)?ibiurl.backgroundlanguage=en\" | grep -c Rain
         curl -sg \"$U/$(< x)?ibiurl.verblist=GetMetadata(csl)\" | jq -r '.[0].title'",
        "application/xml; charset=utf-8
application/x-bibtex; charset=utf-8
application/x-bibtex; charset=utf-8
application/x-research-info-refer; charset=utf-8
application/vnd.citationstyles.csl+json
application/vnd.datacite.datacite+xml; charset=utf-8
application/vnd.datacite.datacite+json
application/ld+json
application/mods+xml; charset=utf-8
application/xml; charset=utf-8
application/yaml
404
1
Rain",
    );
    served.prints(
        &env,
        "oai=\"$U/oai?metadataPrefix=datacite\"
         curl -s \"$oai&verb=ListRecords\" > list; xmllint --xpath \"string(//*[local-name()='title'])\" list
         curl -s \"$oai&verb=GetRecord&identifier=oai:archive-a.example.org:$(< x)\" | grep -c '<resource xmlns=\"http://datacite.org/schema/kernel-4\"'
         curl -s \"$U/oai?verb=ListMetadataFormats\" | grep -o 'Prefix>[a-z_][a-z_]*'
         curl -s \"$U/oai?verb=ListRecords&metadataPrefix=bibtex\" | grep -o 'code=\"[a-zA-Z]*\"'",
        "Rain\n1\nPrefix>oai_dc\nPrefix>datacite\nPrefix>oai_openaire\ncode=\"cannotDisseminateFormat\"",
    );
}

/// A text with the path of a file on the disk of its author leaves as it was written, and is the only thing that has it;
/// what a format gives takes its place.
#[test]
fn only_the_text_has_the_paths_of_a_disk() {
    let env = TestEnv::new().with_a();
    env.sh(
        "ibifs mint A | head -n 1 > x; echo 1 > A/$(< x)/doc/x
         printf '@article{k, title = {Rain}, author = {Silva, Ana}, year = 2010,\n file = {PDF:/home/u/x.pdf:application/pdf}}\n' > x.bib; cp x.bib A/$(< x):",
    );
    let served = Served::start(&env, "A.store");
    served.sh(
        &env,
        "x=$(< x); get \"$U/$x:\" | cmp - x.bib; ibifs export --bagit A/$x out; ibifs export --ocfl A/$x root
         grep -rlZ /home/u out root > found; test $(tr -cd '\\0' < found | wc -c) = 2; xargs -0 -n 1 cmp x.bib < found
         oai=\"oai?verb=ListRecords&metadataPrefix\"
         for path in \"$x?page\" \"$oai=oai_dc\" \"$oai=datacite\" \"$oai=oai_openaire\"; do
             get \"$U/$path\" > body; grep -q Rain body; ! grep /home/u body
         done
         get \"$U/archive.cgi/$x?bag\" > bag.zip; python3 -c 'import zipfile; z = zipfile.ZipFile(\"bag.zip\"); assert not [n for n in z.namelist() if b\"/home/u\" in z.read(n)]'
         cp \"A/$x:(bibtex)\" clean; cp clean \"A/$x:\"; get \"$U/$x:\" > body; grep Rain body; ! grep /home/u body",
    );
}

/// `GetFormats` lists each format that an item can be described in, in the mount, at a service and through a
/// resolver; what it lists is there.
#[test]
fn the_formats_are_listed() {
    let env = TestEnv::new().with_a();
    env.sh(
        "one=$(ibifs mint A | head -n 1) two=$(ibifs mint A --edition-of A/$one | head -n 1); ibip=$(ibip A/$one)
         printf '%s\\n' one=$one ibip=$ibip > vars; echo x > A/$one/doc/x; echo x > A/$two/doc/x
         cut -f 1 \"A/$one?GetFormats\" | tr '\\n' ' ' | grep -Fx 'oai_dc BibINPE bibtex refer ris csl datacite datacite_json jsonld mods dspace cff '
         cut -f 2 \"A/$one:(formats)\" | grep -x 'DataCite 4 in XML'
         for name in \"$one:(formats)\" \"$ibip?GetFormats\" \"$one!:(formats)\" \"$ibip?GetLastEdition+GetFormats\" \"$ibip?GetMetadata(formats)\"; do
             cmp \"A/$one?GetFormats\" \"A/$name\"
         done
         for format in $(cut -f 1 \"A/$one?GetFormats\"); do test -s \"A/$ibip:($format)\"; done
         if cat \"A/$one?GetFormats(x)\" 2> said || echo > \"A/$one?GetFormats\" 2> said; then exit 9; fi
         ibifs id explain \"$one?GetFormats\" --json | jq -e '.modifier == \":(formats)\"'",
    );
    let served = Served::start(&env, "A.store");
    served.sh(
        &env,
        ". ./vars
         for name in \"$one?GetFormats\" \"$ibip:(formats)\" \"rep/$one?ibiurl.verblist=GetFormats\" \"$ibip!?ibiurl.verblist=GetFormats\"; do
             get -L \"$U/$name\" | cmp - \"A/$one?GetFormats\"
         done
         line content-type \"$U/$one:(formats)\" | grep -x 'text/plain; charset=utf-8'
         get \"$U/oai?verb=ListMetadataFormats\" > list; ! grep -q formats.*metadataPrefix list",
    );
}
