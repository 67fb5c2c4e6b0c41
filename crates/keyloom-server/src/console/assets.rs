//! The stylesheet, the script and the icon. They are part of the program. Browsers cache them for
//! good, since their URLs change with their content.

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::path::PathParts;
use crate::problem::Problem;

/// One file.
pub(super) struct Asset {
    stem: &'static str,
    extension: &'static str,
    media: &'static str,
    text: &'static str,
}

pub(super) static STYLE: Asset = Asset {
    stem: "style",
    extension: "css",
    media: "text/css; charset=utf-8",
    text: include_str!("assets/style.css"),
};

pub(super) static SCRIPT: Asset = Asset {
    stem: "script",
    extension: "js",
    media: "text/javascript; charset=utf-8",
    text: include_str!("assets/script.js"),
};

pub(super) static ICON: Asset = Asset {
    stem: "icon",
    extension: "svg",
    media: "image/svg+xml",
    text: include_str!("assets/icon.svg"),
};

static ALL: LazyLock<Vec<(String, &'static Asset)>> = LazyLock::new(|| {
    [&STYLE, &SCRIPT, &ICON].into_iter().map(|asset| (asset.name(), asset)).collect()
});

impl Asset {
    /// Its name, with the beginning of its content's hash.
    fn name(&self) -> String {
        let hash = Sha256::digest(self.text);
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{hash}.{}", self.stem, self.extension)
    }
}

/// The URL of an asset.
pub(super) fn url(asset: &'static Asset) -> String {
    let found = ALL.iter().find(|(_, known)| std::ptr::eq(*known, asset));
    format!("/console/assets/{}", found.map_or("", |(name, _)| name))
}

/// `GET /console/assets/{file}`
pub(super) async fn file(path: PathParts) -> Result<Response, Problem> {
    let found = ALL.iter().find(|(name, _)| name == path.get("file"));
    let (_, asset) = found.ok_or_else(|| Problem::not_found("the console has no such file"))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.media)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    Ok((headers, asset.text).into_response())
}
