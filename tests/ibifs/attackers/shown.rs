//! Private things are not shown, in whichever way they are requested. Each kind has a secret word, which no name
//! beside an item, no listing, no search and no answer over HTTP says to a stranger. Its owner gets it.

use crate::http::served::{Fixture, Served};
use crate::support::TestEnv;

/// For each kind: the private item, or the item that it is in, and another, public item that is related to it in every way.
/// The secret of a kind is `hunterz` and the kind.
const MAKE: &str = r#"
chmod 755 .; mkdir A items; ibifs init A.store --host archive-a.example.org --search texts > /dev/null; ibifs mount A.store A -o allow_other
item() { mint A $1 > items/$1; chmod 755 A/$(< items/$1) A/$(< items/$1)/doc; echo plain > A/$(< items/$1)/doc/plain.txt; }
secret() { printf 'title: hunterz%s\ncreator: hunterz%s, A\nsubject: hunterz%s\n' $1 $1 $1; }
in_item() { secret $1 > "A/$(< items/$1):"; secret $1 > A/$(< items/$1)/doc/secret.txt; }
described_by() { item $1; item $2; secret $1 > A/$(< items/$2)/doc/record.txt; ibifs relate A/$(< items/$1) --metadata A/$(< items/$2) > /dev/null; }

item item; in_item item; chmod 700 A/$(< items/item)
item doc; secret doc > A/$(< items/doc)/doc/secret.txt; chmod 700 A/$(< items/doc)/doc
item file; secret file > A/$(< items/file)/doc/secret.txt; chmod 600 A/$(< items/file)/doc/secret.txt
described_by record-item one; chmod 700 A/$(< items/one)
described_by record-doc two; chmod 700 A/$(< items/two)/doc
described_by record-file three; chmod 600 A/$(< items/three)/doc/record.txt
item text; secret text > "A/$(< items/text):"; chmod 600 A/$(< items/text)/.ibi.metadata
draft=hidden.org/w/2020/01.02.03.04; mkdir -p A/$draft/doc; echo $draft > items/draft
echo "ibi {rep $draft ibip 8JMKD3MGP8W/34PGRBR}" > A/$draft/.ibi; in_item draft; chmod 700 A/hidden.org
for kind in item record-item text draft; do
    item to-$kind; setfattr -n user.ibi.language -v en A/$(< items/to-$kind)
    ibifs relate A/$(< items/to-$kind) --next-edition A/$(< items/$kind) > /dev/null
    setfattr -n user.ibi.translation.pt -v $(< items/$kind) A/$(< items/to-$kind)
done
for kind in item doc file draft; do item of-$kind; ibifs relate A/$(< items/of-$kind) --metadata A/$(< items/$kind) > /dev/null; done
"#;

/// `reads`: the kinds of which the secret is in what a user reads by any name of any item, with one modifier or several.
/// `finds`: the kinds that a user finds in the tree by any query. `said`: the kinds whose secret is in a text.
const TOOLS: &str = r#"
stranger() { setpriv --reuid=1001 --regid=1001 --clear-groups -- "$@"; }
export KINDS='item doc file record-item record-doc record-file text draft'
for item in items/*[!p]; do rep=$(< $item); echo $rep; ibip A/$rep > $item.ibip; case $item in *item | *text | *draft) cat $item.ibip; echo ;; esac; done > names
export ONE='! : +(pt) + :(oai_dc) ?GetFileList'
export TWO='!: +(pt): +: !+(pt) +(pt)! :! !:(oai_dc) +(pt):(oai_dc) !?GetFileList :?GetFileList +(pt)?GetFileList'
said() { tr -cs 'a-zA-Z0-9-' '\n' | { grep -o 'hunterz[a-z-]*' || true; } | sort -u | sed 's/hunterz//' | tr '\n' ' '; }
cat > reads.py <<'END'
import os
def read(path):
    try:
        with open(path, "rb") as file: return file.read(1 << 20)
    except OSError: return b""
def listed(path, deep):
    said = [read(path)]
    for name in os.listdir(path) if os.path.isdir(path) and os.access(path, os.R_OK) else []:
        said += [name.encode()] + (listed(path + "/" + name, deep) if deep else [])
    return said
for name in open("names").read().split():
    for by in [""] + os.environ["ONE"].split() + os.environ["TWO"].split():
        path = "A/" + name + by
        said = listed(path, by in ["", "!", "+(pt)"]) + ([os.readlink(path).encode()] if os.path.islink(path) else [])
        for attribute in ["metadata", "target", "lastedition", "language", "translation.pt"]:
            try: said.append(os.getxattr(path, "user.ibi." + attribute))
            except OSError: pass
        print(b" ".join(said).decode(errors="replace"))
END
cat > finds.py <<'END'
import os
for kind in os.environ["KINDS"].split():
    links = [open("items/" + name).read().replace("/", "_") for name in [kind + ".ibip", "of-" + kind + ".ibip"] if os.path.exists("items/" + name)]
    for query in ["hunterz%s", "hunterz%s".replace("%s", kind[:-1] + "*"), "title:hunterz%s", "description:hunterz%s", "creator:hunterz%s*", "text:hunterz%s", "plain/hunterz%s"]:
        path = "A/.find/" + (query % kind if "%s" in query else query)
        try: found = os.listdir(path)
        except OSError: found = []
        if found or any(os.path.lexists(path + "/" + link) for link in links): print("hunterz" + kind)
END
reads() { "$@" /usr/bin/python3 reads.py | said; echo; }
finds() { "$@" /usr/bin/python3 finds.py | said; echo; }
"#;

fn fixture() -> TestEnv {
    let env = TestEnv::new();
    env.sh(MAKE);
    env
}

#[test]
fn a_private_thing_is_read_by_no_name() {
    let env = fixture();
    let script = format!("{TOOLS} TWO=!: reads env; reads stranger");
    env.prints(
        &script,
        "doc draft file item record-doc record-file record-item text \n",
    );
}

#[test]
fn a_private_thing_is_found_by_no_word() {
    let env = fixture();
    let script = format!(
        r#"{TOOLS}
        ibifs find --complete hunterzfile --store A.store > /dev/null 2>&1 || true
        finds env; finds stranger
        for kind in $KINDS; do stranger ibifs find --store A hunterz$kind 2> /dev/null || true; done
        # Also what was made private after its words were read, by any way; and made public again.
        item() {{ mint A $1 > items/$1; printf 'title: hunterz%s\n' $1 > "A/$(< items/$1):"; chmod 755 A/$(< items/$1); ibip A/$(< items/$1) > items/$1.ibip; }}
        export KINDS='late later latest'; for kind in $KINDS; do item $kind; done; finds stranger
        chmod 700 A/$(< items/late); chmod 600 A/$(< items/later)/.ibi.metadata; chmod 600 A.store/col/$(< items/latest)/.ibi.metadata
        finds stranger; finds env
        chmod 644 A/$(< items/later)/.ibi.metadata; chmod 755 A/$(< items/late); finds stranger"#
    );
    env.prints(
        &script,
        "doc draft file item record-doc record-file record-item text \n\nlate later latest \n\nlate later latest \nlate later ",
    );
}

#[test]
fn a_private_thing_is_in_no_answer() {
    let env = fixture();
    let served = Served::start(&env, "A.store");
    let resolver = Served::resolver(&env, "");
    env.sh(&format!("echo {} > resolver", resolver.url));
    let fixture = Fixture::new(env, served, TOOLS);
    fixture.prints(
        r#"
        S=$(sed -n 's/^ibi.archiveservice {rep \([^ ]*\).*/\1/p' A.store/archive.ibi)
        {
            for path in / /robots.txt /feed.atom /sitemap.xml /sitemap-0.xml /.well-known/resourcesync /capabilitylist.xml /resourcelist.xml /resourcelist-0.xml \
                /changelist.xml /col/ /dav/ '/oai?verb=ListRecords&metadataPrefix=oai_dc' '/oai?verb=ListIdentifiers&metadataPrefix=oai_dc' \
                '/search?by=creator' '/search?by=subject'; do echo "$path"; done
            for kind in $KINDS; do for by in hunterz title:hunterz text:hunterz; do echo "/search?q=$by$kind"; done; done
            while read -r name; do
                for by in '' $ONE $TWO '?page' '?info' '?inventory' '?linkset' '?ibiurl.verblist=GetMetadata(oai_dc)' /doc/secret.txt /doc/record.txt; do echo "/$name$by"; done
                for above in col dav archive.cgi; do for by in '' : /doc/secret.txt /doc/record.txt; do echo "/$above/$name$by"; done; done
                echo "/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:archive-a.example.org:$name"
                for more in '' '&parsedibiurl.verblist=GetMetadata(oai_dc)'; do echo "/$S?servicesubject=urlRequest&parsedibiurl.ibi=$name$more"; done
            done < names
        } > paths
        { sed "s|^|$U|" paths; sed "s|^|$(< resolver)/|" names; } | sed 's/^/url = "/; s/$/"/' > urls
        grep 'search\|page\|:"\|oai_dc)"\|xml"' urls > pages
        all() { curl -s -Z --parallel-max 4 --globoff --path-as-is "$@" || true; }
        { all -K urls; for accept in text/html application/json; do all -H "Accept: $accept" -K pages; done; } > answers; test $(wc -c < answers) -gt 500000
        # A page repeats what was searched for.
        sed 's/\(Search: \|"query": "\|value="\|q=\)[a-z%3A:]*hunterz[a-z-]*//g' answers | said
        grep /dav/ urls > drive; all -X PROPFIND -H 'Depth: 1' -K drive | said
        for item in items/*[!p]; do curl -s "$U/archive.cgi/$(< $item)" > x.zip; unzip -p x.zip 2> /dev/null || true; done | said"#,
        "",
    );
}
