//! Users by JSON Web Tokens (RFC 7519), signed with HMAC and SHA-256.
//!
//! | part | what must hold |
//! | --- | --- |
//! | signature | HS256 over the text as it came. No other algorithm is known, so none can be chosen |
//! | `alg`, `typ`, `crit` | `HS256`; `JWT`, `at+jwt` or absent; absent |
//! | `sub` | 1 to 255 bytes: the acting user |
//! | `exp` | there, and not past |
//! | `nbf` | absent, or past |
//! | `iss`, `aud` | as configured. If no audience is, a token with one is for somebody else |

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use keyloom::read_json;
use serde_json::Value;
use sha2::Sha256;

use super::grant::{Grant, Role, Verb};

/// The longest name of a user, in bytes.
const USER_BYTES_MAX: usize = 255;

/// How JWTs of users are verified.
#[derive(Clone)]
pub(super) struct Users {
    pub(super) secret: Secret,
    pub(super) issuer: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) spaces: Vec<String>,
    /// How far clocks may differ, in seconds.
    pub(super) leeway: u64,
}

/// An HMAC key, which is never displayed.
#[derive(Clone)]
pub(super) struct Secret(pub(super) Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Users {
    /// The rights of a JWT's user; `None` for an invalid JWT, whatever the reason.
    pub(super) fn verify(&self, token: &str, now: u64) -> Option<Grant> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret.0).ok()?;
        mac.update(signed.as_bytes());
        mac.verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        is_known_kind(&part(header)?).then_some(())?;
        self.admit(&part(claims)?, now)
    }

    fn admit(&self, claims: &Value, now: u64) -> Option<Grant> {
        let claims = claims.as_object()?;
        let (now, leeway) = (now as f64, self.leeway as f64);
        let until = claims.get("exp")?.as_f64()?;
        let from = claims.get("nbf").map_or(Some(0.0), Value::as_f64)?;
        let is_in_time = now < until + leeway && now + leeway >= from;
        let is_from_issuer = match &self.issuer {
            Some(issuer) => claims.get("iss")?.as_str()? == issuer,
            None => true,
        };
        let is_for_us = match (&self.audience, claims.get("aud")) {
            (None, None) => true,
            (Some(wanted), Some(named)) => names(named, wanted),
            (Some(_), None) | (None, Some(_)) => false,
        };
        let user = claims.get("sub")?.as_str()?;
        let is_name = (1..=USER_BYTES_MAX).contains(&user.len());
        (is_in_time && is_from_issuer && is_for_us && is_name).then(|| Grant {
            name: "user".to_owned(),
            role: Role::User,
            collections: vec!["*".to_owned()],
            verbs: Verb::ALL.to_vec(),
            spaces: self.spaces.clone(),
            may_act_as: false,
            user: Some(user.to_owned()),
            // A float is rounded down to whole seconds, and 2^64 is the limit.
            until: Some((until + leeway) as u64),
        })
    }
}

/// One part of a JWT: strict JSON in strict base64.
fn part(text: &str) -> Option<Value> {
    read_json(URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

fn is_known_kind(header: &Value) -> bool {
    let is_typed = match header.get("typ") {
        None => true,
        Some(Value::String(kind)) => {
            ["jwt", "at+jwt"].iter().any(|one| kind.eq_ignore_ascii_case(one))
        }
        Some(_) => false,
    };
    header.get("alg").and_then(Value::as_str) == Some("HS256")
        && header.get("crit").is_none()
        && is_typed
}

/// Whether an audience, one name or several, includes the wanted one.
fn names(audience: &Value, wanted: &str) -> bool {
    match audience {
        Value::String(name) => name == wanted,
        Value::Array(several) => several.iter().any(|name| name == wanted),
        _ => false,
    }
}
