//! `keyloom check`.

use super::support::{SCHEMA, Sandbox, repository};

#[test]
fn every_problem_is_told_with_its_file_line_and_column() {
    let sandbox = Sandbox::empty();
    sandbox.write(
        "keyloom.toml",
        "[collection.a]\nkey = \"a:{id}\"\nfields = { id = \"txet\" }\n[collection.b]\nkye = 1\n",
    );
    let ran = sandbox.run(&["check"]).expect(3);
    for place in ["keyloom.toml:3:", "keyloom.toml:4:", "keyloom.toml:5:1"] {
        assert!(ran.err.contains(place), "{place}: {}", ran.err);
    }
    assert!(ran.out.is_empty());
}

#[test]
fn a_folder_of_schemas_is_one_schema() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.path("schemas")).unwrap();
    sandbox
        .write("schemas/a.toml", "[collection.a]\nkey = \"a:{id}\"\nfields = { id = \"text\" }\n");
    sandbox
        .write("schemas/b.json", r#"{"collection":{"b":{"key":"b:{id}","fields":{"id":"text"}}}}"#);
    sandbox.write("schemas/notes.txt", "not a schema");
    let patterns = sandbox.run(&["check", "schemas"]).expect(0).lines();
    for template in ["a:{id}", "b:{id}"] {
        assert!(patterns.iter().any(|pattern| pattern["template"] == template), "{template}");
    }
    sandbox
        .write("schemas/c.toml", "[collection.a]\nkey = \"c:{id}\"\nfields = { id = \"text\" }\n");
    let ran = sandbox.run(&["check", "schemas"]).expect(3);
    assert!(ran.err.contains("schemas/c.toml:1:"), "{}", ran.err);
    std::fs::create_dir(sandbox.path("none")).unwrap();
    assert!(sandbox.run(&["check", "none"]).expect(3).err.contains("hint: "));
}

#[test]
fn the_keyspace_is_printed_for_people_for_programs_and_as_a_page() {
    let sandbox = Sandbox::empty();
    let path = repository("examples/patterns/keyloom.toml");
    let path = path.to_str().unwrap();
    let markdown = sandbox.run(&["check", path, "--markdown"]).expect(0).out;
    assert!(markdown.contains("| `user:{userId}:notes:{noteId}` |"), "{markdown}");
    let narrow = sandbox.run_with(&["check", path, "--table"], &[("COLUMNS", "60")], "").expect(0);
    assert!(narrow.out.contains("  shared:posts:recent:{timestamp}:{postId}\n"), "{}", narrow.out);
    let wide = sandbox.run_with(&["check", path, "--table"], &[("COLUMNS", "300")], "").expect(0);
    assert!(wide.out.contains("example"), "{}", wide.out);
    assert!(wide.err.contains("the schema is right: 9 collections"), "{}", wide.err);
    assert_eq!(sandbox.run(&["check", path, "--quiet"]).expect(0).out, "");
    assert!(sandbox.names().is_empty(), "checking leaves nothing behind");
}

#[test]
fn warnings_do_not_fail() {
    let sandbox = Sandbox::empty();
    sandbox.write(
        "s.toml",
        "[collection.a]\nkey = \"a:{id}\"\nfields = { id = \"text\", count = \"integer\" }\n",
    );
    let ran = sandbox.run(&["check", "s.toml"]).expect(0);
    assert!(ran.err.contains("warning: collection.a.count: looks like a counter"), "{}", ran.err);
}

#[test]
fn what_a_schema_would_change_in_a_store_is_told_and_not_done() {
    let sandbox = Sandbox::with_store();
    let against = ["--store", "file:./keyloom-data"];
    let same = sandbox.run(&[&["check"], &against[..]].concat()).expect(0);
    assert_eq!(same.out, "");
    assert!(same.err.contains("exactly this schema"), "{}", same.err);

    let wider = SCHEMA.to_owned()
        + "[collection.approval.index.status]\nkey = \"approval:status:{status}:{id}\"\n\
           [collection.thing]\nkey = \"thing:{id}\"\nfields = { id = \"text\" }\n";
    sandbox.write("wider.toml", wider);
    let changes = sandbox.run(&[&["check", "wider.toml"], &against[..]].concat()).expect(0).lines();
    let class = |about: &str| {
        let found =
            changes.iter().find(|change| change["change"].as_str().unwrap().contains(about));
        found.unwrap_or_else(|| panic!("{about}: {changes:?}"))["class"].clone()
    };
    assert_eq!(class("approval.index.status"), "needs build");
    assert_eq!(class("collection.thing"), "safe");

    sandbox.write("other.toml", SCHEMA.replace("flow:stats:{flow}", "flow:{flow}"));
    let ran = sandbox.run(&[&["check", "other.toml"], &against[..]].concat()).expect(4);
    assert_eq!(ran.value()["class"], "incompatible");
    sandbox.run(&[&["check"], &against[..]].concat()).expect(0);
}
