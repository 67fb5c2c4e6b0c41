//! Single records by their keys.

use crate::support::TestServer;

const SCHEMA: &str = r#"
    [collection.user]
    key = "user:{id}"
    fields = { id = "text" }
"#;

#[test]
fn a_record_that_is_not_there_is_not_found() {
    let server = TestServer::start(SCHEMA);
    let problem = server.get("/v1/collections/user/records/ana").expect(404);
    assert_eq!(problem["type"], "/problems/not-found");
}
