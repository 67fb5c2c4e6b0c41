//! The tree of keys, with keys that are no text.

use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};

use super::fixture::{self, block_on};
use super::pages::{html, twin};
use crate::support::TestServer;

/// Keys that are no text: below a level that is text, below one that is not, and by themselves.
const KEYS: [&[u8]; 4] = [b"bin:\xff\x00", b"bin:\xc3(:a+b%", b"bin:\xc3(:c", b"\xfe\xfd"];

fn server() -> TestServer {
    let server = fixture::server();
    let mut batch = Batch::new(Space::main());
    for (at, key) in KEYS.into_iter().enumerate() {
        let put = Effect::Put { stamp: Stamp([0; Stamp::BYTES]), bytes: at.to_string().into() };
        batch.push(Address::new(Area::default_area(), key), None, Some(put));
    }
    block_on(server.store.engine().commit(batch)).unwrap();
    server
}

/// The links of the tree on a page.
fn links(page: &str) -> Vec<String> {
    let tree = page.split("<table class=\"tree\">").nth(1).unwrap_or_default();
    let tree = tree.split("</table>").next().unwrap();
    let found = tree.split("<a href=\"").skip(1).filter_map(|it| it.split('"').next());
    found.map(|it| it.replace("&amp;", "&")).collect()
}

#[test]
fn keys_that_are_no_text_have_addresses_that_lead_to_them() {
    let server = server();
    let root = html(&server, "/console/keys");
    assert!(root.contains("\\xfe\\xfd"), "{root}");
    let mut left = links(&root);
    let mut values = Vec::new();
    while let Some(link) = left.pop() {
        if !link.contains("bin") && !link.contains("%FE") {
            continue;
        }
        let (page, model) = (html(&server, &link), twin(&server, &link));
        assert!(!page.contains('\u{fffd}'), "{link}: {page}");
        match model["key"]["value"].as_str() {
            Some(value) => values.push(value.to_owned()),
            None => left.extend(links(&page)),
        }
    }
    values.sort();
    assert_eq!(values, ["0", "1", "2", "3"]);
}

#[test]
fn they_are_shown_escaped_and_each_level_leads_back() {
    let server = server();
    let path = "/console/keys?prefix=bin%3A%C3%28%3Aa%2Bb%25";
    let page = html(&server, path);
    let model = twin(&server, path);
    assert_eq!(model["prefix"], "bin:\\xc3(:a+b%");
    assert_eq!(model["prefix_encoded"], "bin%3A%C3%28%3Aa%2Bb%25");
    assert_eq!(model["key"]["text"], "bin:\\xc3(:a+b%");
    assert!(page.contains("placeholder=\"bin:\\xc3(:a+b%\"") && page.contains("\\xc3("), "{page}");
    assert!(page.contains("href=\"/console/keys?prefix=bin%3A%C3%28%3A\""), "{page}");
    // Text stays text: also letters beyond ASCII, and what a form sends.
    let form = twin(&server, "/console/keys?area=&prefix=approval%3A");
    assert_eq!(form["prefix"], "approval:");
    assert_eq!(form["branches"][0]["text"], "code:");
    assert_eq!(form["branches"][0]["prefix_encoded"], "approval%3Acode%3A");
    let named = html(&server, "/console/keys?prefix=%C3%A9+t");
    assert!(named.contains("value=\"é t\""), "{named}");
}

#[test]
fn a_long_level_goes_on_behind_a_key_that_is_no_text() {
    let server = fixture::server();
    let mut batch = Batch::new(Space::main());
    for number in 0..=255_u8 {
        let put = Effect::Put { stamp: Stamp([0; Stamp::BYTES]), bytes: "0".into() };
        let key = [b"many:\xf0".as_slice(), &[number]].concat();
        batch.push(Address::new(Area::default_area(), key), None, Some(put));
    }
    block_on(server.store.engine().commit(batch)).unwrap();
    let page = html(&server, "/console/keys?prefix=many:");
    let more = page.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let rest = links(&html(&server, &more.replace("&amp;", "&")));
    let first = links(&page);
    assert!(rest.iter().all(|link| !first.contains(link)), "{more}");
    // Five of the bytes are separators, and end a level there.
    assert_eq!(first.len() + rest.len(), 256);
}
