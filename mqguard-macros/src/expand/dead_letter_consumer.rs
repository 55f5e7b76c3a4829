//! The expansion of `#[dead_letter_consumer]`: a consumer by another declaration.

use proc_macro2::TokenStream;

use super::Site;
use crate::model::{Consumer, Handler};

/// The same companion as for `#[consumer]`: what differs is in the `SPEC`.
pub(crate) fn expand(consumer: &Consumer, handler: &Handler, site: &Site) -> TokenStream {
    super::consumer::expand(consumer, handler, site)
}
