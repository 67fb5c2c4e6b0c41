//! Values that try to be something else: markup, attributes, addresses, directions.

use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
use serde_json::json;

use super::fixture::{self, block_on};
use super::pages::tags;
use crate::support::TestServer;

const HOSTILE: [&str; 10] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "</textarea></pre><h1>mine</h1>",
    "<!--",
    "]]>&lt;b&gt;&amp;",
    "\u{202e}gnp.exe\u{200b}",
    "..",
    "{{7*7}}${7*7}",
];

/// What no page may ever hold, whatever is in the store.
fn check(path: &str, page: &str) {
    for mark in ["<script>", "<img", "<h1>mine", "<!--", "href=\"javascript"] {
        assert!(!page.contains(mark), "{path} holds {mark}");
    }
    // What stands in attributes never ends them, so that no value becomes an attribute.
    for (tag, rest) in tags(page) {
        let outside: String = rest.split('"').step_by(2).collect();
        assert!(!outside.contains(" on"), "{path}: <{tag}{rest}>");
        for (at, link) in rest.split(" href=\"").enumerate().skip(1) {
            assert!(link.starts_with('/') || link.starts_with('#'), "{path}: {at} {link}");
            assert!(!link.starts_with("//"), "{path}: {link}");
        }
    }
    // Fields of forms give back what is stored, byte for byte; everything else shows it.
    let text: String = page.split('<').filter_map(|it| it.split_once('>')).map(|it| it.1).collect();
    let hides = text.contains(['\u{202e}', '\u{200b}']);
    assert!(!hides || path.contains("/edit"), "{path} hides something");
}

fn page(server: &TestServer, path: &str) -> String {
    let answer = server.get(path);
    assert!(answer.status < 500, "{path}: {}", answer.status);
    String::from_utf8(answer.body).unwrap()
}

fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[test]
fn no_value_becomes_markup_anywhere() {
    let server = fixture::server();
    let store = &server.store;
    block_on(async {
        let approvals = store.documents("approval").await.unwrap();
        let flows = store.documents("flow").await.unwrap();
        let notes = store.documents("note").await.unwrap();
        for text in HOSTILE {
            let record = json!({
                "id": text, "requester_id": text, "created_at": 1_760_000_000_000_u64,
                "status": "pending", text: { text: [text, { text: text }] },
            });
            approvals.insert(&record).await.unwrap();
            approvals.update_with_retry(text, &json!({ "changed": text })).await.unwrap();
            flows.insert(&json!({ "flow": text, "name": text })).await.unwrap();
            // Most of them cannot be the name of a counter.
            let counter = format!("stats.{}", text.replace('.', "-"));
            drop(flows.increment(text, [(counter, 1)]).await);
            notes
                .acting_as(text)
                .unwrap()
                .insert(&json!({ "userId": text, "noteId": text }))
                .await
                .unwrap();
            let mut batch = Batch::new(Space::main());
            let stamp = Stamp([0; Stamp::BYTES]);
            let address = Address::new(Area::default_area(), format!("free:{text}"));
            batch.push(
                address,
                None,
                Some(Effect::Put { stamp, bytes: text.as_bytes().to_vec().into() }),
            );
            store.engine().commit(batch).await.unwrap();
        }
    });
    let flows = block_on(store.documents("flow")).unwrap();
    for text in HOSTILE {
        let stored = block_on(flows.get_document(text)).unwrap().unwrap();
        let name = encode(&block_on(flows.name_of(&stored.key)).unwrap());
        let text = encode(text);
        let mut paths = vec![
            "/console/".to_owned(),
            "/console/changes".to_owned(),
            "/console/keys?prefix=free:".to_owned(),
            "/console/collections/approval/".to_owned(),
            "/console/collections/approval/indexes/requester".to_owned(),
            format!("/console/keys?prefix={text}&area={text}"),
            format!("/console/keys?prefix=free:{text}"),
            format!("/console/keys?prefix=approval:record:{text}"),
            format!("/console/?as={text}"),
            format!("/console/collections/note/?as={text}"),
            format!("/console/collections/note/record?key={text}&as={text}"),
            format!("/console/collections/approval/?index=requester&where.requester_id={text}"),
            format!(
                "/console/collections/approval/?index={text}&where.{text}={text}&order={text}&cursor={text}"
            ),
            format!("/console/collections/approval/?filter.{text}={text}&filter.changed={text}"),
            format!(
                "/console/collections/approval/?add_field={text}&add_comparison={text}&add_value={text}"
            ),
            format!("/console/collections/{text}/"),
            format!("/console/collections/approval/indexes/{text}"),
            format!("/console/s/{text}/"),
            format!("/console/open?space={text}"),
            format!("/console/?{text}={text}"),
        ];
        for collection in ["approval", "flow"] {
            for form in ["record", "record/edit", "record/delete"] {
                paths.push(format!(
                    "/console/collections/{collection}/{form}?key={text}&notice={text}"
                ));
                let path = format!("/console/collections/{collection}/{form}?key={name}");
                assert_eq!(server.get(&path).status, 200, "{path}");
                paths.push(path);
            }
        }
        for path in paths {
            check(&path, &page(&server, &path));
        }
    }
}

#[test]
fn hostile_names_lead_to_their_own_records() {
    let server = fixture::server();
    let flows = block_on(server.store.documents("flow")).unwrap();
    for text in HOSTILE {
        let record = json!({ "flow": text, "name": "mine" });
        let document = block_on(flows.insert(&record)).unwrap();
        let name = encode(&block_on(flows.name_of(&document.key)).unwrap());
        let path = format!("/console/collections/flow/record?key={name}&format=json");
        let model = server.get(&path).expect(200);
        assert_eq!(model["found"]["record"]["flow"], text);
    }
}

#[test]
fn what_was_sent_comes_back_as_text() {
    let server = fixture::server();
    for text in HOSTILE {
        let fields = [("text", text), ("version", text), ("base", text)];
        for path in [
            "/console/collections/approval/new",
            "/console/collections/approval/record/edit?key=r001",
        ] {
            let answer = super::pages::post(&server, path, &fields);
            assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
            let page = String::from_utf8(answer.body).unwrap();
            for mark in ["<script>", "<img", "<h1>mine", "<!--"] {
                assert!(!page.contains(mark), "{path} holds {mark}");
            }
        }
    }
}
