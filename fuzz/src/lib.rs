//! What the fuzz targets try. Each takes any input, and panics when something that must hold does not.

#[path = "../../mqguard-macros/src/diag.rs"]
#[allow(dead_code)]
mod diag;
#[path = "../../mqguard-macros/src/expand/mod.rs"]
#[allow(dead_code)]
mod expand;
#[path = "../../mqguard-macros/src/fallback.rs"]
mod fallback;
#[path = "../../mqguard-macros/src/model.rs"]
#[allow(dead_code)]
mod model;
#[path = "../../mqguard-macros/src/parse/mod.rs"]
#[allow(dead_code)]
mod parse;
#[path = "../../mqguard-macros/src/root.rs"]
mod root;
#[path = "../../mqguard-macros/src/validate/mod.rs"]
mod validate;

pub mod macros;
pub mod messages;
pub mod names;
