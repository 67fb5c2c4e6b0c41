//! Values of keys for which Rust has no type.

mod datetime;
mod id;
mod point;
mod text;
mod timestamp;
mod uuid;

pub use datetime::DateTime;
pub use id::Id;
pub use point::Point;
pub use timestamp::Timestamp;
pub use uuid::Uuid;
