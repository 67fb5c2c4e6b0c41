//! What tests of access share: a schema with every kind of access, tokens, and JWTs.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use keyloom_server::{Authority, Config, new_token};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Answer, TestServer};

pub const SCHEMA: &str = r#"
    [collection.note]
    key = "user:{userId}:notes:{noteId}"
    access = "owned"
    owner = "userId"
    fields = { userId = "text", noteId = "text", title = "text" }
    [collection.note.index.title]
    key = "user:{userId}:titles:{title sorted}{noteId}"

    [collection.post]
    key = "user:{userId}:posts:{postId}"
    access = "hybrid"
    owner = "userId"
    fields = { userId = "text", postId = "text" }

    [collection.config]
    key = "shared:config:{name}"
    access = "read-only"
    fields = { name = "text" }

    [collection.ticket]
    key = "ticket:{id}"
    fields = { id = "text", state = "text" }
    [collection.ticket.index.state]
    key = "tickets:{state}:{id}"
"#;

pub const SECRET: &[u8] = b"thirty-two bytes are the minimum.";

/// A server with an admin, a few services, and users, and the tokens of them all.
pub struct Guarded {
    pub server: TestServer,
    pub admin: String,
    /// Reads and writes tickets and notes in `main`, for users too.
    pub bot: String,
    /// Reads tickets in `main`.
    pub reader: String,
    /// Everything in the space `other` alone.
    pub tenant: String,
}

impl Guarded {
    pub fn start() -> Self {
        Guarded::with(|config| config)
    }

    pub fn with(configure: impl FnOnce(Config) -> Config) -> Self {
        Guarded::on(SCHEMA, configure)
    }

    pub fn with_schema(schema: &str) -> Self {
        Guarded::on(schema, |config| config)
    }

    fn on(schema: &str, configure: impl FnOnce(Config) -> Config) -> Self {
        let [admin, bot, reader, tenant] = [(); 4].map(|()| new_token());
        let file = format!(
            r#"
            [[token]]
            name = "admin"
            role = "admin"
            sha256 = "{}"
            [[token]]
            name = "bot"
            role = "service"
            sha256 = "{}"
            collections = ["ticket", "note", "planned"]
            verbs = ["read", "write"]
            act_as = true
            [[token]]
            name = "reader"
            role = "service"
            sha256 = "{}"
            collections = ["ticket"]
            verbs = ["read"]
            [[token]]
            name = "tenant"
            role = "service"
            sha256 = "{}"
            collections = ["*"]
            verbs = ["read", "write", "delete"]
            spaces = ["other"]
            [jwt]
            secret_base64 = "{}"
            issuer = "https://login.example"
            audience = "keyloom"
            "#,
            admin.1,
            bot.1,
            reader.1,
            tenant.1,
            STANDARD.encode(SECRET),
        );
        let authority = Authority::from_toml(&file).unwrap();
        let config = configure(Config { authority, ..Config::default() });
        let server = TestServer::with(schema, config);
        Guarded { server, admin: admin.0, bot: bot.0, reader: reader.0, tenant: tenant.0 }
    }

    /// A request with a token or a JWT, and a JSON body unless it is null.
    pub fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_as(token, None, method, path, body)
    }

    /// The same, in the name of a user.
    pub fn ask_as(
        &self,
        token: &str,
        user: Option<&str>,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(user.map(|user| ("keyloom-act-as", user)));
        if body.is_null() {
            return self.server.send(method, path, &headers, "");
        }
        headers.push(("content-type", "application/json"));
        self.server.send(method, path, &headers, body.to_string())
    }

    pub fn get(&self, token: &str, path: &str) -> Answer {
        self.ask(token, "GET", path, &Value::Null)
    }

    /// Puts a record, which must succeed.
    #[track_caller]
    pub fn put(&self, token: &str, path: &str, record: Value) {
        let answer = self.ask(token, "PUT", path, &record);
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs().try_into().unwrap()
}

/// Claims that hold, with some changed; a null takes one away.
pub fn claims(user: &str, changes: Value) -> Value {
    let mut claims = json!({
        "sub": user, "exp": now() + 300, "iss": "https://login.example", "aud": "keyloom",
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

/// The JWT of a user.
pub fn jwt(user: &str) -> String {
    sign(r#"{"alg":"HS256","typ":"JWT"}"#, &claims(user, json!({})).to_string(), SECRET)
}

/// A JWT of these texts.
pub fn sign(header: &str, claims: &str, secret: &[u8]) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(signed.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    format!("{signed}.{signature}")
}
