use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::broker::Message;

/// What a consumer's first parameter can be: anything that implements `serde::Deserialize` (read as JSON), [`Raw`], or
/// [`DeadLetter`](crate::DeadLetter).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a message: it does not implement `Deserialize`",
    label = "not readable from a message",
    note = "the first parameter is the message: add `#[derive(serde::Deserialize)]` to its type (of a `DeadLetter<T>` to `T`), or take `Raw` for the undecoded body"
)]
pub trait Payload: Sized + Send + 'static {
    /// Reads the message.
    ///
    /// # Errors
    /// When the body is not of this type; the error names the place.
    fn decode(message: &Message) -> Result<Self, DecodeError>;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + Send + 'static> Payload for T {
    fn decode(message: &Message) -> Result<Self, DecodeError> {
        decode_json(&message.body)
    }
}

/// The body as it came, for a consumer that decodes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(pub Bytes);

#[diagnostic::do_not_recommend]
impl Payload for Raw {
    fn decode(message: &Message) -> Result<Self, DecodeError> {
        Ok(Self(message.body.clone()))
    }
}

/// The body could not be read as the consumer's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", at(.path))]
pub struct DecodeError {
    /// The field at which it failed (`items[2].price`); empty for the whole body.
    pub path: String,
    /// What was wrong.
    pub problem: String,
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("at `{path}`: ") }
}

/// Reads a JSON body; the error names the path.
pub(crate) fn decode_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    if body.is_empty() {
        // Nothing is what `()` and `None` say.
        let empty = || DecodeError { path: String::new(), problem: "the body is empty, JSON was expected".into() };
        return serde_json::from_slice(b"null").map_err(|_| empty());
    }
    // Keeping track of the path costs, so it is looked for only when there is something to tell.
    serde_json::from_slice(body).map_err(|error| locate::<T>(body).unwrap_or_else(|| whole(&error)))
}

fn locate<T: DeserializeOwned>(body: &[u8]) -> Option<DecodeError> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let error = serde_path_to_error::deserialize::<_, T>(&mut json).err()?;
    let path = Some(error.path().to_string()).filter(|path| path != "." && path != "?");
    Some(DecodeError { path: path.unwrap_or_default(), problem: without_values(&error.inner().to_string()) })
}

fn whole(error: &serde_json::Error) -> DecodeError {
    DecodeError { path: String::new(), problem: without_values(&error.to_string()) }
}

/// serde's text without the values that it quotes: bodies may hold personal data, and errors are logged.
fn without_values(problem: &str) -> String {
    let starts = ["invalid type: ", "invalid value: ", "unknown variant "];
    let Some((start, rest)) = starts.iter().find_map(|start| Some((start, problem.strip_prefix(start)?))) else {
        return problem.to_owned();
    };
    // What is expected comes last, and is the type's own text.
    let (value, expected) = rest.rsplit_once(", expected ").unwrap_or((rest, "something else"));
    let kind = value.split(['`', '"']).next().unwrap_or_default();
    format!("{}, expected {expected}", format!("{start}{kind}").trim_end())
}
