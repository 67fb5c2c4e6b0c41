//! What becomes of a stored schema when a process declares another one.

use super::{SYSTEMS, compiled, problems};
use crate::schema::evolution::{Evolution, evolve};
use crate::schema::{Class, Schema};

/// Compares the approvals with themselves after one edit of their text.
fn after(edit: (&str, &str)) -> (Schema, Schema, Evolution) {
    let (from, to) = edit;
    assert!(SYSTEMS[0].contains(from), "nothing to edit: {from}");
    let stored = compiled(SYSTEMS[0]);
    let declared = compiled(&SYSTEMS[0].replace(from, to));
    let evolution = evolve(&stored, &declared);
    (stored, declared, evolution)
}

fn lines(evolution: &Evolution) -> Vec<String> {
    evolution.changes.iter().map(|change| format!("{:?} {change}", change.class)).collect()
}

/// The edit gives these changes; both ways, if `back` is given.
fn check(edit: (&str, &str), forth: &[&str], back: &[&str]) {
    let (stored, declared, evolution) = after(edit);
    assert_eq!(lines(&evolution), forth, "{edit:?}");
    assert_eq!(lines(&evolve(&declared, &stored)), back, "{edit:?} undone");
}

/// What the store has after the edit is what was declared.
fn takes_effect(edit: (&str, &str)) {
    let (_, declared, evolution) = after(edit);
    assert_eq!(evolution.merged, declared.declaration(), "{edit:?}");
}

/// What the store has after the edit is what it had before.
fn changes_nothing(edit: (&str, &str)) {
    let (stored, _, evolution) = after(edit);
    assert_eq!(evolution.merged, stored.declaration(), "{edit:?}");
}

const CODE: &str = "[collection.approval.unique.code]\nkey = \"approval:code:{code}\"\n";

#[test]
fn collections_come_and_stay() {
    let (approvals, flows) = (compiled(SYSTEMS[0]), compiled(SYSTEMS[3]));
    let evolution = evolve(&approvals, &flows);
    assert_eq!(
        lines(&evolution),
        [
            "Safe collection.flow: is new",
            "Safe collection.run: is new",
            "Kept collection.approval: is in the store only; it stays",
        ]
    );
    let both = approvals.merge(&flows).unwrap();
    assert_eq!(evolution.merged, both.declaration());
}

#[test]
fn indexes_come_and_stay() {
    let edit = (CODE, "");
    check(
        edit,
        &["Kept collection.approval.unique.code: is in the store only; it stays and is maintained"],
        &["NeedsBuild collection.approval.unique.code: is new; it must be built before it is read"],
    );
    changes_nothing(edit);
}

#[test]
fn the_field_by_which_records_expire_comes_and_stays() {
    let (before, after) =
        ("[collection.approval]\n", "[collection.approval]\nexpires_at = \"created_at\"\n");
    check(
        (before, after),
        &["NeedsBuild collection.approval.expires_at: is new; \
           its index must be built before records are swept"],
        &["Kept collection.approval.expires_at: is in the store only; it stays"],
    );
    takes_effect((before, after));
    let expiring = |field: &str| {
        let text = SYSTEMS[0].replace(
            "created_at   = \"timestamp\"",
            "created_at = \"timestamp\"\nends = \"timestamp\"",
        );
        compiled(
            &text.replace(before, &format!("[collection.approval]\nexpires_at = \"{field}\"\n")),
        )
    };
    let evolution = evolve(&expiring("created_at"), &expiring("ends"));
    assert_eq!(
        lines(&evolution),
        ["Incompatible collection.approval.expires_at: the records expire by `created_at`, not \
             by `ends`; keep `created_at`, or declare a collection of another name, and copy the \
             records into it"]
    );
    assert_eq!(evolution.merged, expiring("created_at").declaration());
}

#[test]
fn fields_come_and_stay() {
    let edit = ("approver_id  = \"text\"", "approver_id  = \"text\"\nreason = \"text\"");
    check(
        edit,
        &["Safe collection.approval.fields.reason: is new"],
        &["Kept collection.approval.fields.reason: is in the store only; it stays"],
    );
    takes_effect(edit);
}

#[test]
fn values_of_an_enum_come_and_stay() {
    let edit = ("\"denied\", \"canceled\"], tr", "\"denied\", \"canceled\", \"lost\"], tr");
    check(
        edit,
        &["Safe collection.approval.fields.status: the value `lost` is new"],
        &["Kept collection.approval.fields.status: \
           the value `lost` is in the store only; it stays"],
    );
    takes_effect(edit);
}

#[test]
fn rules_change() {
    let transitions = ("{ pending = [\"approved\", ", "{ pending = [");
    let changed = "Safe collection.approval.fields.status: the transitions changed";
    check(transitions, &[changed], &[changed]);
    takes_effect(transitions);

    let required =
        ("requester_id = \"text\"", "requester_id = { type = \"text\", required = true }");
    check(
        required,
        &["Safe collection.approval.fields.requester_id: `required` is now true"],
        &["Kept collection.approval.fields.requester_id: `required` stays true, as in the store"],
    );
    takes_effect(required);

    let sparse = ("{code}\"", "{code}\"\nsparse = false");
    check(
        sparse,
        &["Safe collection.approval.unique.code: `sparse` is now false"],
        &["Kept collection.approval.unique.code: `sparse` stays false, as in the store"],
    );
    takes_effect(sparse);
}

/// A process that does not mention a flag does not know of it, and takes nothing away. One that
/// says what it wants is heard.
#[test]
fn flags_that_are_left_out_stay() {
    let subject = "collection.approval.fields";
    let left_out = ("{ type = \"id\", generate = true }", "\"id\"");
    check(
        left_out,
        &[&format!("Kept {subject}.id: `generate` stays true, as in the store")],
        &[&format!("Safe {subject}.id: `generate` is now true")],
    );
    changes_nothing(left_out);
    let refused = ("{ type = \"id\", generate = true }", "{ type = \"id\", generate = false }");
    check(
        refused,
        &[&format!("Safe {subject}.id: `generate` is now false")],
        &[&format!("Safe {subject}.id: `generate` is now true")],
    );
    takes_effect(refused);
    let spelt_out =
        ("approver_id  = \"text\"", "approver_id = { type = \"text\", required = false }");
    check(spelt_out, &[], &[]);
    changes_nothing(spelt_out);
}

#[test]
fn transitions_that_a_process_does_not_know_stay() {
    let edit = (", transitions = { pending = [\"approved\", \"denied\", \"canceled\"] } }", " }");
    check(
        edit,
        &["Kept collection.approval.fields.status: \
           the transitions are in the store only; they stay"],
        &["Safe collection.approval.fields.status: the transitions changed"],
    );
    changes_nothing(edit);
}

#[test]
fn a_body_comes_changes_and_stays() {
    let key = "key = \"approval:record:{id}\"";
    let with = |body: &str| SYSTEMS[0].replace(key, &format!("{key}\n{body}"));
    let none = compiled(SYSTEMS[0]);
    let one = compiled(&with("body = { minProperties = 1 }"));
    let two = compiled(&with("body = { minProperties = 2 }"));
    let class = |from: &Schema, to: &Schema| {
        let evolution = evolve(from, to);
        let [change] = evolution.changes.as_slice() else { panic!("{evolution:?}") };
        (change.class, evolution.merged)
    };
    assert_eq!(class(&none, &one), (Class::Safe, one.declaration()));
    assert_eq!(class(&one, &two), (Class::Safe, two.declaration()));
    assert_eq!(class(&two, &none), (Class::Kept, two.declaration()));
}

#[test]
fn keys_do_not_change_in_passing() {
    let record = ("approval:record:{id}", "approval:{id}");
    check(
        record,
        &["Incompatible collection.approval.key: the records' keys are `approval:record:{id}`, \
           not `approval:{id}`; declare a collection of another name, and copy the records into it"],
        &["Incompatible collection.approval.key: the records' keys are `approval:{id}`, \
           not `approval:record:{id}`; declare a collection of another name, and copy the records into it"],
    );
    changes_nothing(record);

    let index = ("{approver_id}:{created_at desc}", "{approver_id}:{created_at}");
    let sentence = "Incompatible collection.approval.index.approver: `key` differs from the index \
                    in the store; declare the new form under another name, and build it; the one \
                    in the store stays, and `Store::disable` ends its upkeep";
    check(index, &[sentence], &[sentence]);
    changes_nothing(index);

    let area = ("key = \"approval:record:{id}\"", "key = \"approval:record:{id}\"\narea = \"x\"");
    let (_, _, evolution) = after(area);
    assert_eq!(
        lines(&evolution)[0],
        "Incompatible collection.approval.area: \
         the records are in area \"\", not \"x\"; declare a collection of another name, and copy the records into it"
    );
    let is_refused = evolution.changes.iter().all(|change| change.class == Class::Incompatible);
    assert!(is_refused && evolution.changes.len() == 4, "the records and three indexes");
    changes_nothing(area);
}

#[test]
fn what_entries_hold_and_which_there_are_does_not_change_in_passing() {
    for (addition, differences) in [
        ("holds = \"record\"", "`holds`"),
        ("where = { status = \"pending\" }", "`where`"),
        ("holds = \"key\"\nwhere = { status = \"pending\" }", "`holds` and `where`"),
        ("area = \"codes\"", "`area`"),
    ] {
        let text = format!("{{code}}\"\n{addition}");
        let edit = ("{code}\"", text.as_str());
        let sentence = format!(
            "Incompatible collection.approval.unique.code: {differences} differs from the index \
             in the store; declare the new form under another name, and build it; the one in the \
             store stays, and `Store::disable` ends its upkeep"
        );
        check(edit, &[&sentence], &[&sentence]);
        changes_nothing(edit);
    }
}

#[test]
fn an_index_does_not_change_its_kind() {
    let claims =
        "[collection.approval.index.code]\nkey = \"approval:code:{code}\"\nclaims = true\n";
    let edit = (CODE, claims);
    check(
        edit,
        &["Incompatible collection.approval.index.code: the store has a unique index of that \
           name, which stays; choose another name"],
        &["Incompatible collection.approval.unique.code: the store has an index of that name, \
           which stays; choose another name"],
    );
    changes_nothing(edit);
}

#[test]
fn types_do_not_change_in_passing() {
    let edit = ("created_at   = \"timestamp\"", "created_at   = \"integer\"");
    check(
        edit,
        &[
            "Incompatible collection.approval.fields.created_at: is {\"type\":\"timestamp\"} in the \
           store, not {\"type\":\"integer\",\"digits\":19}; \
           keep its type, or declare a field of another name and copy the values into that",
        ],
        &["Incompatible collection.approval.fields.created_at: is \
           {\"type\":\"integer\",\"digits\":19} in the store, not {\"type\":\"timestamp\"}; \
           keep its type, or declare a field of another name and copy the values into that"],
    );
    changes_nothing(edit);
}

#[test]
fn types_change_where_no_key_moves() {
    let text = |uuid: &str, free: u8, keyed: u8| {
        compiled(&format!(
            r#"
            [collection.x]
            key = "x:{{id}}:{{keyed}}"
            [collection.x.fields]
            id = {uuid}
            free = {{ type = "integer", digits = {free} }}
            keyed = {{ type = "integer", digits = {keyed} }}
            "#
        ))
    };
    let four = "{ type = \"uuid\", version = 4 }";
    let base = text(four, 3, 3);
    let classes = |from: &Schema, to: &Schema| {
        evolve(from, to).changes.iter().map(|change| change.class).collect::<Vec<_>>()
    };
    let any = text("\"uuid\"", 3, 3);
    assert_eq!(
        lines(&evolve(&base, &any)),
        ["Kept collection.x.fields.id: `version` stays 4, as in the store"]
    );
    assert_eq!(evolve(&base, &any).merged, base.declaration());
    assert_eq!(classes(&any, &base), [Class::Incompatible]);
    let wide = text(four, 4, 3);
    assert_eq!(classes(&base, &wide), [Class::Safe]);
    assert_eq!(evolve(&base, &wide).merged, wide.declaration());
    assert_eq!(classes(&wide, &base), [Class::Safe]);
    assert_eq!(evolve(&wide, &base).merged, base.declaration());
    assert_eq!(
        lines(&evolve(&wide, &base)),
        ["Safe collection.x.fields.free: has up to 3 digits from now on, and not 4; a larger \
          number that is there stays until it is changed"]
    );
    let moved = text(four, 3, 4);
    assert_eq!(
        lines(&evolve(&base, &moved)),
        [
            "Incompatible collection.x.fields.keyed: has up to 3 digits in the store, and the keys of \
          the records are made for that; declare `digits = 3`, or a field of another name"
        ]
    );
}

#[test]
fn digits_change_only_where_no_key_of_the_store_has_them() {
    let text = |digits: u8, index: &str| {
        compiled(&format!(
            r#"
            [collection.x]
            key = "x:{{id}}"
            [collection.x.fields]
            id = "text"
            n = {{ type = "integer", digits = {digits} }}
            {index}
            "#
        ))
    };
    let (free, keyed) = ("", "[collection.x.index.n]\nkey = \"n:{n}:{id}\"");
    let is_refused = |from: &Schema, to: &Schema| {
        let evolution = evolve(from, to);
        let refused = evolution.changes.iter().any(|change| change.class == Class::Incompatible);
        // What was let in once is let in again.
        if !refused {
            let merged = Schema::from_declaration(evolution.merged).unwrap();
            assert_eq!(evolve(&merged, to).changes, []);
        }
        refused
    };
    for (from, to, refused) in [
        (text(10, free), text(5, free), false),
        (text(10, free), text(5, keyed), false),
        (text(5, free), text(10, keyed), false),
        (text(10, keyed), text(5, free), true),
        (text(5, keyed), text(10, free), true),
        (text(5, keyed), text(10, keyed), true),
        (text(10, keyed), text(5, keyed), true),
    ] {
        assert_eq!(is_refused(&from, &to), refused, "{from:?} then {to:?}");
    }
}

#[test]
fn a_max_is_as_it_was_declared_last() {
    let stored = compiled(SYSTEMS[3]);
    let higher = compiled(&SYSTEMS[3].replace("max = 32", "max = 40"));
    assert_eq!(
        lines(&evolve(&stored, &higher)),
        ["Safe collection.run.index.due: `max` rises from 32 to 40"]
    );
    let lower = compiled(&SYSTEMS[3].replace("max = 32", "max = 8"));
    let evolution = evolve(&stored, &lower);
    assert_eq!(
        lines(&evolution),
        [
            "Safe collection.run.index.due: `max` falls from 32 to 8; a record that has more entries \
          keeps them until its elements change"
        ]
    );
    assert_eq!(evolution.merged, lower.declaration());
    let silent = compiled(&SYSTEMS[3].replace("max = 32", ""));
    let evolution = evolve(&stored, &silent);
    assert_eq!(
        lines(&evolution),
        ["Kept collection.run.index.due: `max` stays 32, as in the store"]
    );
    assert_eq!(evolution.merged, stored.declaration());
}

#[test]
fn what_is_new_must_not_clash_with_what_was_kept() {
    let stored = compiled(SYSTEMS[0]);
    let declared = compiled(
        r#"
        [collection.other]
        key = "approval:code:{x}"
        [collection.other.fields]
        x = "text"
        "#,
    );
    let evolution = evolve(&stored, &declared);
    assert_eq!(lines(&evolution)[0], "Safe collection.other: is new");
    let error = Schema::from_declaration(evolution.merged).unwrap_err();
    assert!(problems(&error)[0].contains("could both have the key `approval:code:"), "{error}");
}

#[test]
fn a_log_comes_and_stays_and_its_bounds_follow_the_last_to_declare_it() {
    let log = |text: &str| compiled(&format!("{text}\n{}", SYSTEMS[0]));
    let (none, short, long) = (log(""), log("[log]\ndays = 1"), log("[log]\ndays = 9"));
    for (stored, declared, line, merged) in [
        (&none, &short, "Safe log: is new; it tells of changes from now on", &short),
        (&short, &none, "Kept log: is in the store only; it stays", &short),
        (&short, &long, "Safe log: keeps another part of the changes", &long),
    ] {
        let evolution = evolve(stored, declared);
        assert_eq!(lines(&evolution), [line]);
        assert_eq!(evolution.merged, merged.declaration());
    }
    assert_eq!(none.merge(&short).unwrap(), short);
    assert_eq!(short.merge(&none).unwrap(), short);
    let error = short.merge(&long).unwrap_err();
    assert_eq!(problems(&error), ["log: is declared differently in two schemas"]);
}

const NOTE: &str = r#"
[collection.note]
key = "user:{userId}:notes:{noteId}"
fields = { userId = "text", noteId = "text" }
"#;

fn note(access: &str) -> Schema {
    let owner = if matches!(access, "owned" | "hybrid") { "owner = \"userId\"" } else { "" };
    let access = if access.is_empty() { String::new() } else { format!("access = {access:?}") };
    compiled(&NOTE.replace("fields", &format!("{access}\n{owner}\nfields")))
}

#[test]
fn access_is_narrowed_and_never_widened() {
    let all = ["shared", "read-only", "owned", "hybrid"];
    let narrower = [
        ("shared", "read-only"),
        ("shared", "owned"),
        ("shared", "hybrid"),
        ("hybrid", "owned"),
        ("hybrid", "read-only"),
    ];
    for (before, after) in all.iter().flat_map(|before| all.map(|after| (*before, after))) {
        let (stored, declared) = (note(before), note(after));
        let evolution = evolve(&stored, &declared);
        let (class, merged) = match (before, after) {
            _ if before == after => {
                assert!(evolution.changes.is_empty(), "{evolution:?}");
                continue;
            }
            pair if narrower.contains(&pair) => (Class::Safe, &declared),
            _ => (Class::Incompatible, &stored),
        };
        assert_eq!(evolution.changes[0].class, class, "{before} to {after}");
        assert_eq!(evolution.merged, merged.declaration(), "{before} to {after}");
    }
}

#[test]
fn a_program_that_says_nothing_of_access_obeys_the_store() {
    for access in ["shared", "read-only", "owned", "hybrid"] {
        let evolution = evolve(&note(access), &note(""));
        let kept = "Kept collection.note.access: is in the store only; it stays";
        assert_eq!(lines(&evolution), [kept]);
        assert_eq!(evolution.merged, note(access).declaration());
        // Not to say anything is to allow everything, so that whatever is said narrows it.
        let evolution = evolve(&note(""), &note(access));
        assert_eq!(evolution.changes[0].class, Class::Safe, "{evolution:?}");
        assert_eq!(evolution.merged, note(access).declaration());
    }
}

#[test]
fn counters_come_and_stay_and_change_their_bounds() {
    let schema = |counters: &str| {
        let head = "[collection.flow]\nkey = \"flow:{id}\"\nfields = { id = \"id\" }\n";
        compiled(&format!("{head}[collection.flow.counters]\n{counters}"))
    };
    let stored = schema("\"stats.running\" = { min = 0 }\nold = {}");
    let declared = schema("\"stats.running\" = { max = 9 }\n\"hits.*\" = {}");
    let evolution = evolve(&stored, &declared);
    assert_eq!(
        lines(&evolution),
        [
            "Safe collection.flow.counters.\"hits.*\": is new; it shows in place of what records \
             may hold there",
            "Safe collection.flow.counters.\"stats.running\": has other bounds, from the next \
             increment on",
            "Kept collection.flow.counters.\"stats.running\": keeps the bounds of the store that \
             are not declared",
            "Kept collection.flow.counters.old: is in the store only; it stays",
        ]
    );
    let both = schema("\"stats.running\" = { min = 0, max = 9 }\n\"hits.*\" = {}\nold = {}");
    assert_eq!(evolution.merged, both.declaration());
    assert_eq!(evolve(&both, &both).changes, []);
    let lowered = schema("\"stats.running\" = { min = -5 }\n\"hits.*\" = {}\nold = {}");
    let merged = schema("\"stats.running\" = { min = -5, max = 9 }\n\"hits.*\" = {}\nold = {}");
    assert_eq!(evolve(&both, &lowered).merged, merged.declaration());
}

const COUNT: &str = "[collection.approval.count.by_status]\ngroup = [\"status\"]\n";

#[test]
fn aggregates_come_and_stay_and_never_change() {
    let with = |more: &str| compiled(&format!("{}\n{more}", SYSTEMS[0]));
    let (without, counted) = (compiled(SYSTEMS[0]), with(COUNT));
    let subject = "collection.approval.count.by_status";
    let added = evolve(&without, &counted);
    assert_eq!(
        lines(&added),
        [format!("NeedsBuild {subject}: is new; it must be built before it is read")]
    );
    assert_eq!(added.merged, counted.declaration());
    let kept = evolve(&counted, &without);
    assert_eq!(
        lines(&kept),
        [format!("Kept {subject}: is in the store only; it stays and is maintained")]
    );
    assert_eq!(kept.merged, counted.declaration());
    let other = with(&COUNT.replace("[\"status\"]", "[]"));
    let changed = evolve(&counted, &other);
    assert_eq!(
        lines(&changed),
        [format!(
            "Incompatible {subject}: differs from the one in the store; declare the new form under \
             another name, and build it; the one in the store stays, and `Store::disable` ends its \
             upkeep"
        )]
    );
    let index = with("[collection.approval.index.by_status]\nkey = \"s:{status}:{id}\"");
    assert_eq!(
        lines(&evolve(&counted, &index))[0],
        "Incompatible collection.approval.index.by_status: the store has a count or a sum of \
         that name, which stays; choose another name"
    );
    assert_eq!(
        lines(&evolve(&index, &counted))[1],
        format!(
            "Incompatible {subject}: the store has something else of that name, which stays; \
             choose another name"
        )
    );
}

/// The values of a group are keys: they must not move.
#[test]
fn digits_of_a_group_never_change() {
    let schema = |digits: u8| {
        compiled(&format!(
            "[collection.c]\nkey = \"c:{{id}}\"\ncount.n = {{ group = [\"level\"] }}\n\
             fields = {{ id = \"text\", level = {{ type = \"integer\", digits = {digits} }} }}"
        ))
    };
    for (stored, declared) in [(3, 5), (5, 3)] {
        let evolution = evolve(&schema(stored), &schema(declared));
        assert_eq!(evolution.changes[0].class, Class::Incompatible);
    }
}
