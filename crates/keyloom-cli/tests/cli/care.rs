//! What verify and repair say, and how they end.

use super::support::Sandbox;

const USERS: &str =
    "[collection.user]\nkey = \"user:{id}\"\nfields = { id = \"text\", email = \"text\" }\n";
const BY_EMAIL: &str = "[collection.user.unique.email]\nkey = \"email:{email}\"\n";

#[test]
fn verify_ends_with_1_until_a_declared_index_serves() {
    let sandbox = Sandbox::empty();
    sandbox.write("schema.toml", USERS);
    sandbox.run(&["schema", "--apply", "schema.toml"]).expect(0);
    for id in ["a", "b"] {
        sandbox.run(&["put", "user", id, "{\"email\":\"x@y\"}"]).expect(0);
    }
    sandbox.write("schema.toml", format!("{USERS}{BY_EMAIL}"));
    sandbox.run(&["schema", "--apply", "schema.toml"]).expect(0);

    for command in ["verify", "repair"] {
        let building = sandbox.run(&[command, "--table"]).expect(1);
        assert_eq!(building.out, "user.email is building\n");
        assert!(building.err.contains("; 1 index is building\n"), "{}", building.err);
        assert!(building.err.ends_with("hint: `keyloom build user email` makes it complete\n"));
    }

    sandbox.run(&["build", "user", "email"]).expect(4);
    let failed = sandbox.run(&["verify", "--table"]).expect(1);
    assert_eq!(failed.out, "user.email is failed: email \"x@y\" is in user:a and in user:b\n");
    assert_eq!(
        failed.err,
        "keyloom: no finding in 2 records and 0 entries; 1 index is failed\n\
         hint: change the records that the reason names, then `keyloom build user email`\n"
    );
    let told = sandbox.run(&["verify", "--json"]).expect(1);
    assert!(told.out.contains("\"is_clean\":false"), "{}", told.out);
    assert!(told.out.contains("\"state\":\"failed\""), "{}", told.out);

    // What the hint says, done.
    sandbox.run(&["patch", "user", "b", "{\"email\":\"z@y\"}"]).expect(0);
    sandbox.run(&["build", "user", "email"]).expect(0);
    let whole = sandbox.run(&["verify", "--table"]).expect(0);
    assert_eq!(whole.err, "everything is whole: 2 records and 2 entries\n");
}
