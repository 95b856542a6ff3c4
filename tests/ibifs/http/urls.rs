//! The URL at which a service is reached is the one that it names, everywhere.

use super::served::{Fixture, Served};
use crate::support::TestEnv;

/// An Archive with an item of two files, a next edition of one file, and metadata, served with these options.
fn library(options: &str) -> Fixture {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        item=$(ibifs mint A | head -n 1); echo $item > item
        echo one > "A/$item/doc/a b.txt"; echo two > A/$item/doc/two.txt
        echo 'title: Rainfall' > "A/$item:"
        next=$(ibifs mint A --edition-of $item | head -n 1); echo $next > next
        echo three > A/$next/doc/three.txt
    "#);
    let served = Served::start(&env, &format!("A.store {options}"));
    let tools = "item=$(cat item); next=$(cat next); ibip=$(ibip A/$item)";
    Fixture::new(env, served, tools)
}

#[test]
fn every_url_is_that_of_the_service() {
    let fixture = library("--url https://archive.example.org/x/y/");
    fixture.prints(
        r#"
        get "$U/oai?verb=Identify" | grep -o '<baseURL>.*</baseURL>'
        get "$U/x/y/oai?verb=Identify" | grep -o '<baseURL>.*</baseURL>'
        get "$U/$item:(oai_dc)" -g | grep -o 'https\?://[^<"]*example.org[^<"]*' | sed "s;$ibip\$;IBIP;;s;$(ibip A/$next)\$;NEXT;"
        get "$U/$item:(bibtex)" -g | grep -o 'url = .*' | sed "s;$ibip;IBIP;"
        cat "A/$item:(oai_dc)" | grep -o '<dc:identifier>http.*<' | sed "s;$ibip;IBIP;"
        line location "$U/$next" | sed "s;$next;NEXT;"
        line location "$U/x/y/$item!" | sed "s;$next;NEXT;"
        ibifs relate A/$next --next-edition example.org/x/2001/01.01.01.01
        curl -s "$U/x/y/$item!"
        line content-location "$U/x/y/$item/two.txt" | sed "s;$item;ITEM;"
        service=$(sed -n 's/.*ibi.archiveservice {rep \([^ ]*\) .*/\1/p' A.store/archive.ibi)
        get "$U/x/y/$service?servicesubject=urlRequest&parsedibiurl.ibi=$next" | tr -d '\r' | grep -E '^(archiveaddress|url) ' | sed "s;$next;NEXT;"
        get -H 'Accept: application/json' "$U/x/y/$item" | grep -o '"[a-z_]*url": ".*"' | sed "s;$next;NEXT;;s;$item;ITEM;;s;$ibip;IBIP;" | sort -u
        "#,
        r#"<baseURL>https://archive.example.org/x/y/oai</baseURL>
<baseURL>https://archive.example.org/x/y/oai</baseURL>
https://archive.example.org/x/y/IBIP
https://archive.example.org/x/y/NEXT
url = {https://archive.example.org/x/y/IBIP},
<dc:identifier>http://archive-a.example.org/IBIP<
/x/y/col/NEXT/doc/three.txt
/x/y/col/NEXT/doc/three.txt
example.org/x/2001/01.01.01.01 is held by another Archive, and this one names no resolver that finds it
/x/y/col/ITEM/doc/two.txt
archiveaddress archive.example.org
url https://archive.example.org/x/y/col/NEXT/doc/three.txt
"bag_url": "/x/y/archive.cgi/ITEM?bag"
"file_list_url": "/x/y/ITEM?ibiurl.verblist=GetFileList"
"metadata_url": "/x/y/ITEM:"
"oai_dc_url": "/x/y/ITEM:(oai_dc)"
"persistent_url": "https://archive.example.org/x/y/IBIP"
"url": "/x/y/NEXT"
"url": "/x/y/col/ITEM/doc/a%20b.txt"
"url": "/x/y/col/ITEM/doc/two.txt"
"url": "https://archive.example.org/x/y/example.org/x/2001/01.01.01.01"
"zip_url": "/x/y/archive.cgi/ITEM""#,
    );
}

/// A reader who follows the links of the pages stays below the path of the service.
#[test]
fn pages_link_below_the_prefix_only() {
    let fixture = library("--url http://127.0.0.1/x/y");
    fixture.sh(r#"
        echo "/x/y/" > open; : > seen
        while read -r path; do
            grep -qxF "$path" seen && continue
            echo "$path" >> seen
            get -L -H 'Accept: text/html' -g "$U$path" -o body -w '%{content_type}' > type
            grep -q '^text/html' type || continue
            ! grep -oE ' (href|src|action)="/[^"]*' body | grep -v '="/x/y/' || exit 1
            grep -oE ' href="/[^"]*' body | sed 's/.*"//;s/&amp;/\&/g' >> open
        done < open
        grep -c . seen | { read n; [ $n -ge 8 ]; }
        grep -qF "/x/y/col/$item/doc/a%20b.txt" seen
        "#);
}

#[test]
fn the_facts_of_the_archive_name_url_and_resolver() {
    let env = TestEnv::new();
    env.sh(
        r#"
        ibifs init S --host archive.example.org --url https://archive.example.org/x --resolver http://urlib.net/ > /dev/null
        tail -n 2 S/archive.ibi | diff - <(printf 'url https://archive.example.org/x\nresolver http://urlib.net\n')
        ibifs mint S | head -n 1 > item
        sed -i '/^url /d' S/archive.ibi
        ibifs mint S > /dev/null
        echo 'url https://other.example.org' >> S/archive.ibi
        ibifs fsck S
        for bad in other.example.org ftp://a.b https://a.b?c 'https://a.b/c d' https://https://a.b; do
            ! ibifs init T --host t.example.org --url "$bad" 2> why; grep -q 'is not the URL of a service' why
            ! ibifs serve S --url "$bad" 2> why; grep -q 'is not the URL of a service' why
        done
        ! ibifs serve S --address https://other.example.org 2> why; grep -q 'without http://' why
        [ ! -e T ]
        "#,
    );
    let served = Served::start(&env, "S");
    served.prints(
        &env,
        r#"
        get "$U/oai?verb=Identify" | grep -o '<baseURL>.*</baseURL>'
        get "$U/$(cat item):(oai_dc)" -g | grep -o '<dc:identifier>http://urlib.net/' "#,
        "<baseURL>https://other.example.org/oai</baseURL>\n<dc:identifier>http://urlib.net/",
    );
}
