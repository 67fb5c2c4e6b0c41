//! The access file: what it may say, and what is said of one that is wrong.

use std::fs;

use keyloom_server::{Authority, Config, new_token};

fn refused(file: &str) -> String {
    Authority::from_toml(file).unwrap_err().to_string()
}

#[test]
fn every_problem_is_told_with_its_line() {
    let (token, hash) = new_token();
    let file = format!(
        r#"limits = 3
[[token]]
name = "ops"
role = "admin"
sha256 = "{hash}"
verbs = ["read"]
[[token]]
name = "ops"
role = "service"
sha256 = "{hash}"
collections = "ticket"
verbs = ["read", "erase"]
act_as = "yes"
[[token]]
name = "a b"
role = "owner"
sha256 = "{token}"
[[token]]
[jwt]
leeway = -1
secrets = "x"
"#
    );
    let message = refused(&file);
    for problem in [
        "line 1: the file has no limits here",
        "line 6: a token has no verbs here; it has name, role, sha256",
        "line 11: collections is an array of texts",
        "line 12: the verbs are read, write, delete, not \"erase\"",
        "line 13: act_as is true or false",
        "line 15: a name has 1 to 64",
        "line 16: the role is \"admin\" or \"service\", not \"owner\"",
        "line 17: this is the token itself",
        "line 18: a token needs name",
        "line 18: a token needs role",
        "line 18: a token needs sha256",
        "line 19: [jwt] needs one of secret_file, secret_env, secret_base64",
        "line 20: leeway is a number of seconds, 0 to 600",
        "line 21: [jwt] has no secrets here",
    ] {
        assert!(message.contains(problem), "{problem}\nis not in\n{message}");
    }
    assert!(!message.contains(&token) && !message.contains(&hash));
}

#[test]
fn tokens_are_told_apart_by_name_and_hash() {
    let hash = new_token().1;
    let token = |name: &str| {
        format!("[[token]]\nname = \"{name}\"\nrole = \"admin\"\nsha256 = \"{hash}\"\n")
    };
    let message = refused(&(token("a") + &token("a")));
    assert!(message.contains("line 5: another token has the name \"a\""), "{message}");
    let message = refused(&(token("a") + &token("b")));
    assert!(message.contains("line 5: another token has the same sha256"), "{message}");
}

#[test]
fn a_service_gets_nothing_by_leaving_something_out() {
    let hash = new_token().1;
    let file = format!("[[token]]\nname = \"a\"\nrole = \"service\"\nsha256 = \"{hash}\"\n");
    let message = refused(&file);
    assert!(message.contains("line 1: a service needs collections"), "{message}");
    assert!(message.contains("line 1: a service needs verbs"), "{message}");
}

#[test]
fn a_file_by_which_nobody_could_enter_is_refused() {
    assert!(refused("").contains("nobody could enter"));
    assert!(refused("token = 3").contains("[[token]]"));
    assert!(refused("[[token]\nname").contains("line 1"));
}

#[test]
fn the_secret_of_jwts_comes_from_a_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.toml");
    fs::write(&path, "[jwt]\nsecret_file = \"jwt.key\"\n").unwrap();
    let message = Authority::from_file(&path).unwrap_err().to_string();
    assert!(message.contains("line 2: the file cannot be read"), "{message}");
    let (place, problem) = (message.find("access.toml"), message.find("line 2"));
    assert!(place < problem, "the file is named first: {message}");
    fs::write(folder.path().join("jwt.key"), "short\n").unwrap();
    let message = Authority::from_file(&path).unwrap_err().to_string();
    assert!(message.contains("line 2: the secret has fewer than 32 bytes"), "{message}");
    assert!(!message.contains("short"), "{message}");
    // The line end is no part of the secret.
    fs::write(folder.path().join("jwt.key"), format!("{}\r\n", "s".repeat(31))).unwrap();
    assert!(Authority::from_file(&path).is_err());
    fs::write(folder.path().join("jwt.key"), format!("{}\n", "s".repeat(32))).unwrap();
    assert!(!Authority::from_file(&path).unwrap().is_open());
    let message = Authority::from_file(folder.path().join("none")).unwrap_err().to_string();
    assert!(message.contains("the access file cannot be read"), "{message}");
}

#[test]
fn a_secret_has_one_source_that_can_be_read() {
    let two = refused("[jwt]\nsecret_env = \"A\"\nsecret_file = \"b\"");
    assert!(two.contains("line 1: [jwt] needs one of"), "{two}");
    let missing = refused("[jwt]\nsecret_env = \"KEYLOOM_NO_SUCH_VARIABLE\"");
    assert!(missing.contains("no variable KEYLOOM_NO_SUCH_VARIABLE"), "{missing}");
    let broken = refused("[jwt]\nsecret_base64 = \"a secret that is no base64\"");
    assert!(broken.contains("line 2: this is not base64"), "{broken}");
    assert!(!broken.contains("a secret"), "{broken}");
}

#[test]
fn a_configuration_can_be_printed_without_telling_a_secret() {
    let (token, hash) = new_token();
    let secret = "dGhpcnR5LXR3byBieXRlcyBhcmUgdGhlIG1pbmltdW0u";
    let file = format!(
        "[[token]]\nname = \"ops\"\nrole = \"admin\"\nsha256 = \"{hash}\"\n\
         [jwt]\nsecret_base64 = \"{secret}\"\n"
    );
    let authority = Authority::from_toml(&file).unwrap();
    let printed = format!("{:?}", Config { authority, ..Config::default() });
    assert!(printed.contains("ops"), "{printed}");
    for hidden in [token.as_str(), &hash, secret, "thirty", "116, 104"] {
        assert!(!printed.contains(hidden), "{printed}");
    }
}
